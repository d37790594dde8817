import { startGateway, type TestGateway } from './gateway.js';
import {
  type LegacyScript,
  type ScriptedBackend,
  type StepHandler,
  startLegacyBackend,
  startModernBackend,
} from './misbehave.js';
import type { Loose } from './net.js';
import {
  type LegacyOptions,
  type LegacySession,
  legacy,
  type ModernOptions,
  modern,
  openModern,
  RawJson,
  type RawResponse,
  type RawStream,
  rawStringify,
} from './raw.js';

/** Era of the client, then of the backend: L legacy, M modern. */
export type Cell = 'LL' | 'LM' | 'ML' | 'MM';
export const CELLS: readonly Cell[] = ['LL', 'LM', 'ML', 'MM'];

export interface CellOptions {
  script?: LegacyScript;
  /** Of the route. */
  route?: Record<string, Loose>;
  /** Of the gateway file. */
  config?: Record<string, Loose>;
  /** Of the legacy client's handshake. */
  handshake?: LegacyOptions;
}

/** A raw client of one era and a scripted backend of one era, with a gateway between them. */
export interface Rig {
  readonly cell: Cell;
  readonly modernClient: boolean;
  readonly modernBackend: boolean;
  readonly gateway: TestGateway;
  readonly backend: ScriptedBackend;
  /** The legacy client's session, opened when it is first asked for. */
  session(): Promise<LegacySession>;
  /** Sends a request in the client's era. Members of `params` that are `RawJson` go out as written. */
  call(method: string, params?: Loose, options?: ModernOptions): Promise<RawResponse>;
  /** As `call`, but gives the stream. */
  open(method: string, params?: Loose, options?: ModernOptions): Promise<RawStream>;
  /** A result for the backend to give: JSON text of the object, which a modern backend begins with `resultType`. */
  result(text: string): { result: RawJson };
  /** Lets the backend answer a method with a result, JSON text of the object, from now on. */
  answer(method: string, text: string): void;
  on(method: string, handler: StepHandler | undefined): void;
  /** Text of the last body that reached the backend with this method. */
  sent(method: string): string;
  close(): Promise<void>;
}

/** JSON text to be sent as it is. */
export const raw = (text: string): RawJson => new RawJson(text);

export async function startCell(cell: Cell, options: CellOptions = {}): Promise<Rig> {
  const modernClient = cell[0] === 'M';
  const modernBackend = cell[1] === 'M';
  const backend = await (modernBackend
    ? startModernBackend(options.script)
    : startLegacyBackend(options.script));
  const { backend: more, ...route } = options.route ?? {};
  const gateway = await startGateway(
    { '/mcp': { backend: { url: backend.url, ...more }, ...route } },
    options.config,
  );
  let opening: Promise<LegacySession> | undefined;
  const session = () => {
    opening ??= legacy(gateway.url(), options.handshake);
    return opening;
  };
  /** `meta` and `headers` are for both eras, the rest of the options for the modern one. */
  const legacyCall = (params: Loose, { meta, ...rest }: ModernOptions): [Loose, Loose] => [
    meta === undefined ? params : { ...params, _meta: { ...params?._meta, ...meta } },
    rest,
  ];
  const rig: Rig = {
    cell,
    modernClient,
    modernBackend,
    gateway,
    backend,
    session,
    async call(method, params, given = {}) {
      if (modernClient) return modern(gateway.url(), method, params, given);
      return (await session()).request(method, ...legacyCall(params, given));
    },
    async open(method, params, given = {}) {
      if (modernClient) return openModern(gateway.url(), method, params, given);
      return (await session()).open(method, ...legacyCall(params, given));
    },
    result(text) {
      if (!modernBackend) return { result: raw(text) };
      const rest = text.replace(/^\s*\{\s*/, '');
      return { result: raw(`{"resultType":"complete"${rest.startsWith('}') ? '' : ','}${rest}`) };
    },
    answer: (method, text) => backend.on(method, () => rig.result(text)),
    on: (method, handler) => backend.on(method, handler),
    sent: (method) => backend.received(method).at(-1)?.text ?? '',
    async close() {
      await gateway.close();
      await backend.close();
    },
  };
  return rig;
}

/** A JSON-RPC answer around a result or error that is JSON text. */
export function frameText(id: unknown, member: 'result' | 'error', text: string): string {
  return rawStringify({ jsonrpc: '2.0', id, [member]: raw(text) });
}
