import {
  type ClientOptions as ClientOptionsV2,
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client';
import {
  type ClientOptions as ClientOptionsV1,
  Client as ClientV1,
} from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as schemas from '@modelcontextprotocol/sdk/types.js';
import type { Loose } from './net.js';

/** The client lines and modes that the gateway has to please. */
export type ClientKind = 'v1' | 'v2 legacy' | 'v2 auto' | 'v2 pin';
export const CLIENT_KINDS: readonly ClientKind[] = ['v1', 'v2 legacy', 'v2 auto', 'v2 pin'];

export interface CallOptions {
  /** Called for each progress notification; asks for them by being there. */
  onprogress?: (progress: Loose) => void;
  /** Aborting it cancels the call in the way of the client's era. */
  signal?: AbortSignal;
  /** Milliseconds; default 60,000. */
  timeout?: number;
}

export interface ConnectOptions {
  headers?: Record<string, string>;
  /** Client capabilities to declare, e.g. `{ elicitation: {} }`. */
  capabilities?: Loose;
  /** Answers to server requests by method, e.g. `{ 'elicitation/create': async (params) => ({ action: 'decline' }) }`. */
  handlers?: Record<string, (params: Loose) => Promise<Loose>>;
  /** What a 2.x client follows of its own accord, as its option of that name has it. */
  listChanged?: Loose;
  name?: string;
}

/** One connected client of either SDK line, in one vocabulary. */
export interface TestClient {
  readonly kind: ClientKind;
  /** The SDK's own client, for whatever this interface leaves out. */
  readonly sdk: Loose;
  readonly era: 'legacy' | 'modern';
  /** Log messages that arrived, in order. */
  readonly logs: Loose[];
  /** Methods of the other notifications that arrived, in order. */
  readonly notifications: { method: string; params: Loose }[];
  /** Errors that the transport reported out of band. */
  readonly errors: Error[];
  /** Every page of a list, joined. */
  listTools(): Promise<Loose[]>;
  listResources(): Promise<Loose[]>;
  listResourceTemplates(): Promise<Loose[]>;
  listPrompts(): Promise<Loose[]>;
  callTool(name: string, args?: Loose, options?: CallOptions): Promise<Loose>;
  readResource(uri: string): Promise<Loose>;
  getPrompt(name: string, args?: Loose): Promise<Loose>;
  complete(ref: Loose, argument: { name: string; value: string }): Promise<Loose>;
  /** Closes the connection; a legacy client ends its session first. */
  close(): Promise<void>;
}

async function pages(list: (params: Loose) => Promise<Loose>, member: string): Promise<Loose[]> {
  const all: Loose[] = [];
  let cursor: string | undefined;
  do {
    const result = await list(cursor === undefined ? {} : { cursor });
    all.push(...result[member]);
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return all;
}

/** The SDK's client in the vocabulary of {@link TestClient}, as far as all lines have it in common. */
export function wrap(kind: ClientKind, sdk: Loose, transport: Loose): Omit<TestClient, 'callTool' | 'era'> {
  const logs: Loose[] = [];
  const notifications: { method: string; params: Loose }[] = [];
  const errors: Error[] = [];
  sdk.onerror = (error: Error) => errors.push(error);
  sdk.fallbackNotificationHandler = async (notification: Loose) => {
    if (notification.method === 'notifications/message') logs.push(notification.params);
    else notifications.push({ method: notification.method, params: notification.params });
  };
  return {
    kind,
    sdk,
    logs,
    notifications,
    errors,
    listTools: () => pages((params) => sdk.listTools(params), 'tools'),
    listResources: () => pages((params) => sdk.listResources(params), 'resources'),
    listResourceTemplates: () => pages((params) => sdk.listResourceTemplates(params), 'resourceTemplates'),
    listPrompts: () => pages((params) => sdk.listPrompts(params), 'prompts'),
    readResource: (uri) => sdk.readResource({ uri }),
    getPrompt: (name, args = {}) => sdk.getPrompt({ name, arguments: args }),
    complete: (ref, argument) => sdk.complete({ ref, argument }),
    async close() {
      if (transport.sessionId) await transport.terminateSession().catch(() => {});
      await sdk.close();
    },
  };
}

const info = (options: ConnectOptions) => ({ name: options.name ?? 'ExampleClient', version: '1.0.0' });
const requestInit = (options: ConnectOptions) =>
  options.headers ? { requestInit: { headers: options.headers } } : {};

/** Connects an SDK 1.x client. */
export async function connectV1(url: string, options: ConnectOptions = {}): Promise<TestClient> {
  const clientOptions: ClientOptionsV1 = { capabilities: options.capabilities ?? {} };
  const sdk = new ClientV1(info(options), clientOptions);
  const transport = new TransportV1(new URL(url), requestInit(options));
  const client = wrap('v1', sdk, transport);
  for (const [method, answer] of Object.entries(options.handlers ?? {})) {
    const { [schemaName(method)]: schema } = schemas as Loose;
    sdk.setRequestHandler(schema, ((request: Loose) => answer(request.params)) as Loose);
  }
  await sdk.connect(transport as Loose);
  return {
    ...client,
    era: 'legacy',
    callTool: (name, args = {}, call = {}) =>
      sdk.callTool({ name, arguments: args }, schemas.CallToolResultSchema, call as Loose),
  };
}

/** `elicitation/create` → `ElicitRequestSchema`, the name of its zod schema in the 1.x line. */
function schemaName(method: string): string {
  const names: Record<string, string> = {
    'elicitation/create': 'ElicitRequestSchema',
    'sampling/createMessage': 'CreateMessageRequestSchema',
    'roots/list': 'ListRootsRequestSchema',
  };
  const name = names[method];
  if (!name) throw new Error(`no server request ${method}`);
  return name;
}

/**
 * Connects an SDK 2.x client: `legacy` handshakes, `auto` probes with `server/discover` and falls back, `pin` speaks
 * 2026-07-28 and nothing else.
 */
export async function connectV2(
  url: string,
  mode: 'legacy' | 'auto' | 'pin' = 'auto',
  options: ConnectOptions = {},
): Promise<TestClient> {
  const clientOptions: ClientOptionsV2 = {
    capabilities: options.capabilities ?? {},
    versionNegotiation: { mode: mode === 'pin' ? { pin: '2026-07-28' } : mode },
    ...(options.listChanged && { listChanged: options.listChanged }),
  };
  const sdk = new ClientV2(info(options), clientOptions);
  const transport = new TransportV2(new URL(url), requestInit(options));
  const client = wrap(`v2 ${mode}`, sdk, transport);
  for (const [method, answer] of Object.entries(options.handlers ?? {})) {
    sdk.setRequestHandler(method as Loose, ((request: Loose) => answer(request.params)) as Loose);
  }
  await sdk.connect(transport);
  return {
    ...client,
    era: sdk.getProtocolEra() ?? 'legacy',
    callTool: (name, args = {}, call = {}) => sdk.callTool({ name, arguments: args }, call as Loose),
  };
}

/** Connects a client of the given kind. */
export function connect(kind: ClientKind, url: string, options?: ConnectOptions): Promise<TestClient> {
  if (kind === 'v1') return connectV1(url, options);
  return connectV2(url, kind.slice(3) as 'legacy' | 'auto' | 'pin', options);
}
