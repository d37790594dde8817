import { randomUUID } from 'node:crypto';
import { type Backend, type BackendExchange, type BackendStream, startBackend } from './backend.js';
import type { Loose } from './net.js';
import { MODERN } from './raw.js';

export * from './backend.js';

/** What a scripted step gives: the result, an error, or undefined if it has answered itself (or never will). */
export type Outcome = { result: unknown } | { error: Loose } | undefined;

/** One JSON-RPC message (or a GET or DELETE) that reached a scripted backend. */
export interface Step extends BackendExchange {
  /** The JSON-RPC id; undefined for notifications, GET and DELETE. */
  readonly id: Loose;
  readonly params: Loose;
  /** The session that the message came on, if any. */
  readonly session: string | undefined;
  /** The JSON-RPC frame of an answer to this message, to be sent by hand. */
  frame(outcome: { result: unknown } | { error: Loose }): Loose;
}

/** Returns the outcome; `undefined` says that the handler deals with the answer itself. */
export type StepHandler = (step: Step) => Outcome | Promise<Outcome>;

export interface Script {
  capabilities?: Loose;
  instructions?: string;
  serverInfo?: Loose;
  /** Tools listed; default one, `echo`, which returns its arguments. */
  tools?: Loose[];
  /** Frame answers as SSE; default JSON. */
  sse?: boolean;
  /**
   * Replaces single steps, by JSON-RPC method (`initialize`, `notifications/initialized`, `tools/call` …) or by HTTP
   * method (`GET`, `DELETE`).
   */
  on?: Record<string, StepHandler>;
  /** Sees every HTTP request first; true says that it has answered it, or never will. */
  intercept?: (exchange: BackendExchange) => boolean;
}

export interface LegacyScript extends Script {
  /** Revision answered; default: the one asked for. */
  version?: string;
  /** False: a stateless server that hands out no session ids and has no GET stream. */
  sessions?: boolean;
}

/** A backend that plays a script. */
export interface ScriptedBackend extends Backend {
  /** Session ids handed out and not ended by DELETE or `forget`. */
  readonly sessions: Set<string>;
  /** Loses every session, as a server that was restarted; its open streams break. */
  forget(): void;
  /** GET streams opened, in order, each with its session. */
  readonly streams: { session: string | undefined; stream: BackendStream }[];
  /** Replaces a step from now on; undefined restores the usual one. */
  on(method: string, handler: StepHandler | undefined): void;
}

const ECHO = { name: 'echo', description: 'Returns its arguments', inputSchema: { type: 'object' } };

/** Answers common to both eras. */
function commonSteps(script: Script): Record<string, StepHandler> {
  return {
    ping: () => ({ result: {} }),
    'logging/setLevel': () => ({ result: {} }),
    'tools/list': () => ({ result: { tools: script.tools ?? [ECHO] } }),
    'tools/call': ({ params }) => {
      const text = JSON.stringify(params?.arguments ?? {});
      return { result: { content: [{ type: 'text', text }], structuredContent: params?.arguments } };
    },
  };
}

async function play(
  exchange: BackendExchange,
  session: string | undefined,
  sse: boolean,
  headers: Record<string, string>,
  handler: StepHandler,
): Promise<void> {
  const message = exchange.json;
  const frame = (outcome: { result: unknown } | { error: Loose }) => ({
    jsonrpc: '2.0',
    id: message?.id ?? null,
    ...outcome,
  });
  const step: Step = Object.defineProperties(
    { id: message?.id, params: message?.params, session, frame },
    Object.getOwnPropertyDescriptors(exchange),
  ) as unknown as Step;
  const outcome = await handler(step);
  if (outcome === undefined || exchange.res.headersSent) return;
  if (sse && 'result' in outcome && message?.id !== undefined) {
    const stream = exchange.stream(headers);
    stream.event(frame(outcome), { event: 'message' });
    stream.end();
  } else {
    exchange.sendJson(frame(outcome), 200, headers);
  }
}

const accepted: StepHandler = ({ res }) => {
  res.writeHead(202).end();
  return undefined;
};
const unknown: StepHandler = () => ({ error: { code: -32601, message: 'Method not found' } });

/**
 * A minimal legacy server, correct by default: handshake, session ids, GET stream, DELETE, `tools/list`, `tools/call`.
 * Each step can be replaced to misbehave.
 */
export async function startLegacyBackend(script: LegacyScript = {}): Promise<ScriptedBackend> {
  const sessions = new Set<string>();
  const streams: ScriptedBackend['streams'] = [];
  const overrides = new Map(Object.entries(script.on ?? {}));
  const stateful = script.sessions !== false;
  const usual: Record<string, StepHandler> = {
    ...commonSteps(script),
    initialize: ({ params }) => ({
      result: {
        protocolVersion: script.version ?? params?.protocolVersion,
        capabilities: script.capabilities ?? { tools: {} },
        serverInfo: script.serverInfo ?? { name: 'scripted-legacy', version: '1.0.0' },
        ...(script.instructions === undefined ? {} : { instructions: script.instructions }),
      },
    }),
    GET: (step) => {
      if (stateful) streams.push({ session: step.session, stream: step.stream() });
      else step.res.writeHead(405, { allow: 'POST' }).end();
      return undefined;
    },
    DELETE: ({ session, res }) => {
      sessions.delete(session ?? '');
      res.writeHead(stateful ? 200 : 405).end();
      return undefined;
    },
  };
  const backend = await startBackend((exchange) => {
    if (script.intercept?.(exchange)) return;
    const message = exchange.json;
    const key: string = exchange.method === 'POST' ? message?.method : exchange.method;
    const given = exchange.headers['mcp-session-id'];
    let session = typeof given === 'string' ? given : undefined;
    if (stateful && key === 'initialize') {
      session = randomUUID();
      sessions.add(session);
    } else if (stateful && (session === undefined || !sessions.has(session))) {
      const [status, code, text] = session ? [404, -32001, 'Session not found'] : [400, -32000, 'No session'];
      return exchange.sendJson(
        { jsonrpc: '2.0', error: { code, message: text }, id: null },
        status as number,
      );
    }
    const handler =
      overrides.get(key) ?? usual[key ?? ''] ?? (message?.id === undefined || !key ? accepted : unknown);
    const headers: Record<string, string> = stateful && session ? { 'mcp-session-id': session } : {};
    return play(exchange, session, script.sse ?? false, headers, handler);
  });
  return scripted(backend, sessions, streams, overrides);
}

/**
 * A minimal modern server, correct by default: `server/discover`, `tools/list`, `tools/call`; it answers `initialize`
 * and whatever lacks the envelope as a server without a legacy leg does.
 */
export async function startModernBackend(script: Script = {}): Promise<ScriptedBackend> {
  const overrides = new Map(Object.entries(script.on ?? {}));
  const meta = {
    'io.modelcontextprotocol/serverInfo': script.serverInfo ?? { name: 'scripted-modern', version: '1.0.0' },
  };
  const complete = (result: Loose) => ({
    resultType: 'complete',
    ...result,
    _meta: { ...meta, ...result._meta },
  });
  const common = commonSteps(script);
  const usual: Record<string, StepHandler> = {
    'server/discover': () => ({
      result: complete({
        supportedVersions: [MODERN],
        capabilities: script.capabilities ?? { tools: {} },
        ttlMs: 0,
        cacheScope: 'private',
        ...(script.instructions === undefined ? {} : { instructions: script.instructions }),
      }),
    }),
    'tools/list': async (step) => {
      const outcome = (await common['tools/list']?.(step)) as { result: Loose };
      return { result: complete({ ...outcome.result, ttlMs: 0, cacheScope: 'private' }) };
    },
    'tools/call': async (step) => {
      const outcome = (await common['tools/call']?.(step)) as { result: Loose };
      return { result: complete(outcome.result) };
    },
    GET: ({ res }) => void res.writeHead(405, { allow: 'POST' }).end() as undefined,
    DELETE: ({ res }) => void res.writeHead(405, { allow: 'POST' }).end() as undefined,
  };
  const backend = await startBackend((exchange) => {
    if (script.intercept?.(exchange)) return;
    const message = exchange.json;
    const key: string = exchange.method === 'POST' ? message?.method : exchange.method;
    const claim = message?.params?._meta?.['io.modelcontextprotocol/protocolVersion'];
    const handler = overrides.get(key) ?? usual[key ?? ''];
    const refuse = (status: number, error: Loose) =>
      exchange.sendJson({ jsonrpc: '2.0', id: message?.id ?? null, error }, status);
    if (exchange.method === 'POST' && message?.id === undefined && !overrides.has(key)) {
      exchange.res.writeHead(202).end();
      return;
    }
    if (exchange.method === 'POST' && claim !== MODERN && !overrides.has(key)) {
      return refuse(400, {
        code: -32022,
        message: 'Unsupported protocol version',
        data: { supported: [MODERN], requested: claim ?? '' },
      });
    }
    if (!handler) return refuse(404, { code: -32601, message: 'Method not found' });
    return play(exchange, undefined, script.sse ?? false, {}, handler);
  });
  return scripted(backend, new Set(), [], overrides);
}

function scripted(
  backend: Backend,
  sessions: Set<string>,
  streams: ScriptedBackend['streams'],
  overrides: Map<string, StepHandler>,
): ScriptedBackend {
  return {
    ...backend,
    sessions,
    streams,
    forget() {
      sessions.clear();
      for (const { stream } of streams.splice(0)) stream.destroy();
    },
    on(method, handler) {
      if (handler) overrides.set(method, handler);
      else overrides.delete(method);
    },
  };
}
