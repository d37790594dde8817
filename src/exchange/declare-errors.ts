/** How each layer declares the errors that it makes: one table per layer, and no other way to make one. */

export interface PerEra {
  readonly legacy: number;
  readonly modern: number;
}

/** One row of a layer's table. */
export interface ErrorDeclaration {
  /** JSON-RPC code, the same toward clients of both eras unless it says otherwise. */
  readonly code: number | PerEra;
  /** HTTP status, the same toward clients of both eras unless it says otherwise. */
  readonly status: number | PerEra;
  /** What was expected and what came, for the client; `{limit}` is a placeholder. Never names a backend's address. */
  readonly message: string;
  /** What to do about it, for the log and the troubleshooting page. */
  readonly hint: string;
  /** The client may try again after so many seconds; sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
}

type Placeholders<Template extends string> = Template extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholders<Rest>
  : never;

/** A value for each placeholder of a message template. */
export type MessageValues<Template extends string> = Readonly<
  Record<Placeholders<Template>, string | number>
>;

export type ErrorName = `ERAGATE_${string}`;

/** An error that the gateway may make. Only {@link declareErrors} makes one. */
export class DeclaredError<Template extends string = string> {
  readonly name: ErrorName;
  readonly code: PerEra;
  readonly status: PerEra;
  readonly hint: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Private, so that no other object has this type. */
  readonly #template: Template;

  private constructor(name: ErrorName, declaration: ErrorDeclaration & { readonly message: Template }) {
    const { code, status, hint, message, retryAfterSeconds } = declaration;
    this.name = name;
    this.code = perEra(code);
    this.status = perEra(status);
    this.hint = hint;
    this.#template = message;
    this.headers = retryAfterSeconds === undefined ? undefined : { 'retry-after': String(retryAfterSeconds) };
  }

  static of(name: ErrorName, declaration: ErrorDeclaration): DeclaredError {
    return new DeclaredError(name, declaration);
  }

  /** The message with its placeholders. */
  get template(): Template {
    return this.#template;
  }

  /** The message with its placeholders filled in. */
  message(values: MessageValues<Template>): string {
    return this.#template.replace(/\{(\w+)\}/g, (_, name: Placeholders<Template>) => String(values[name]));
  }

  /** JSON text of the error's `data`: what the specification puts there, and the name. */
  data(specified?: Readonly<Record<string, unknown>>): string {
    return JSON.stringify({ ...specified, eragate: this.name });
  }
}

type Declared<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends { readonly message: infer Template extends string }
    ? DeclaredError<Template>
    : never;
};

/** Declares the errors of one layer, by name. Names are public: they are never reused for something else. */
export function declareErrors<const Table extends Readonly<Record<ErrorName, ErrorDeclaration>>>(
  table: Table,
): Declared<Table> {
  const entries = Object.entries(table) as [ErrorName, ErrorDeclaration][];
  return Object.fromEntries(
    entries.map(([name, declaration]) => [name, DeclaredError.of(name, declaration)]),
  ) as Declared<Table>;
}

function perEra(value: number | PerEra): PerEra {
  return typeof value === 'number' ? { legacy: value, modern: value } : value;
}
