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

/** A value for each placeholder of a message. */
export type MessageValues<Name extends string> = Readonly<Record<Name, string | number>>;

export type ErrorName = `ERAGATE_${string}`;

/**
 * An error that the gateway may make. Only {@link declareErrors} makes one.
 * @typeParam Placeholder names of the placeholders in its message
 */
export class DeclaredError<Placeholder extends string = string> {
  readonly name: ErrorName;
  readonly code: PerEra;
  readonly status: PerEra;
  readonly hint: string;
  readonly placeholders: readonly Placeholder[];
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Private, so that no other object has this type. */
  readonly #template: string;

  private constructor(name: ErrorName, declaration: ErrorDeclaration) {
    const { code, status, hint, message, retryAfterSeconds } = declaration;
    this.name = name;
    this.code = perEra(code);
    this.status = perEra(status);
    this.hint = hint;
    this.placeholders = [...message.matchAll(PLACEHOLDER)].map(([, key]) => key as Placeholder);
    this.headers = retryAfterSeconds === undefined ? undefined : { 'retry-after': String(retryAfterSeconds) };
    this.#template = message;
  }

  static of(name: ErrorName, declaration: ErrorDeclaration): DeclaredError {
    return new DeclaredError(name, declaration);
  }

  /** The message with its placeholders filled in. */
  message(values: MessageValues<Placeholder>): string {
    return this.#template.replace(PLACEHOLDER, (_, key: Placeholder) => String(values[key]));
  }

  /** JSON text of the error's `data`: what the specification puts there, and the name. */
  data(specified?: Readonly<Record<string, unknown>>): string {
    return JSON.stringify({ ...specified, eragate: this.name });
  }
}

const PLACEHOLDER = /\{(\w+)\}/g;

type Declared<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends { readonly message: infer Template extends string }
    ? DeclaredError<Placeholders<Template>>
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
