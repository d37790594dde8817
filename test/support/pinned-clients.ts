import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as typesV1 from '@modelcontextprotocol/sdk/types.js';
import { Client as ClientOfMarch } from 'sdk-2025-03-26/client/index.js';
import { StreamableHTTPClientTransport as TransportOfMarch } from 'sdk-2025-03-26/client/streamableHttp.js';
import * as typesOfMarch from 'sdk-2025-03-26/types.js';
import { Client as ClientOfJune } from 'sdk-2025-06-18/client/index.js';
import { StreamableHTTPClientTransport as TransportOfJune } from 'sdk-2025-06-18/client/streamableHttp.js';
import * as typesOfJune from 'sdk-2025-06-18/types.js';
import { type TestClient, wrap } from './clients.js';
import type { Loose } from './net.js';

interface Release {
  readonly revision: string;
  readonly client: Loose;
  readonly transport: Loose;
  readonly types: Loose;
}

/** Releases of the official SDK whose clients speak one of the handshake's revisions each. */
export const PINNED: Readonly<Record<string, Release>> = {
  'SDK 1.12.3': {
    revision: '2025-03-26',
    client: ClientOfMarch,
    transport: TransportOfMarch,
    types: typesOfMarch,
  },
  'SDK 1.17.5': {
    revision: '2025-06-18',
    client: ClientOfJune,
    transport: TransportOfJune,
    types: typesOfJune,
  },
  'SDK 1.32': { revision: '2025-11-25', client: ClientV1, transport: TransportV1, types: typesV1 },
  'SDK 2.4': { revision: '2025-11-25', client: ClientV2, transport: TransportV2, types: {} },
};

export interface PinnedOptions {
  capabilities?: Loose;
  /** Answers to server requests by method; of clients of the 1.x line alone. */
  handlers?: Record<string, (params: Loose) => Promise<Loose>>;
  /** Takes the place of the global `fetch`; for the oldest release, which can be given none, it does so everywhere. */
  fetch?: typeof fetch;
}

export interface PinnedClient extends TestClient {
  readonly transport: Loose;
}

/** The names of their zod schemas. */
const QUESTIONS: Readonly<Record<string, string>> = {
  'elicitation/create': 'ElicitRequestSchema',
  'sampling/createMessage': 'CreateMessageRequestSchema',
  'roots/list': 'ListRootsRequestSchema',
};

/** Connects the client of a release, by its name in {@link PINNED}. */
export async function connectPinned(
  name: string,
  url: string,
  options: PinnedOptions = {},
): Promise<PinnedClient> {
  const { client: Client, transport: Transport, types } = PINNED[name] as (typeof PINNED)[string];
  const capabilities = options.capabilities ?? {};
  const sdk: Loose = new Client({ name: 'ExampleClient', version: '1.0.0' }, { capabilities });
  const transport: Loose = new Transport(new URL(url), { fetch: options.fetch });
  const client = wrap('v1', sdk, transport);
  for (const [method, answer] of Object.entries(options.handlers ?? {})) {
    // Who knows a question that came after the release brings its schema along.
    const schema =
      (types as Loose)[QUESTIONS[method] as string] ?? (typesOfJune as Loose)[QUESTIONS[method] as string];
    sdk.setRequestHandler(schema, (request: Loose) => answer(request.params));
  }
  const own = globalThis.fetch;
  if (options.fetch !== undefined && name === 'SDK 1.12.3') globalThis.fetch = options.fetch;
  await sdk.connect(transport);
  return {
    ...client,
    transport,
    era: 'legacy',
    callTool: (tool, args = {}, call = {}) =>
      name === 'SDK 2.4'
        ? sdk.callTool({ name: tool, arguments: args }, call)
        : sdk.callTool({ name: tool, arguments: args }, undefined, call),
    async close() {
      await client.close();
      globalThis.fetch = own;
    },
  };
}
