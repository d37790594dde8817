import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientOfMarch } from 'sdk-2025-03-26/client/index.js';
import { StreamableHTTPClientTransport as TransportOfMarch } from 'sdk-2025-03-26/client/streamableHttp.js';
import { Client as ClientOfJune } from 'sdk-2025-06-18/client/index.js';
import { StreamableHTTPClientTransport as TransportOfJune } from 'sdk-2025-06-18/client/streamableHttp.js';
import type { Loose } from './net.js';

/** Releases of the official SDK whose clients speak one of the handshake's revisions each. */
export const PINNED: Readonly<Record<string, { revision: string; client: Loose; transport: Loose }>> = {
  'SDK 1.12.3': { revision: '2025-03-26', client: ClientOfMarch, transport: TransportOfMarch },
  'SDK 1.17.5': { revision: '2025-06-18', client: ClientOfJune, transport: TransportOfJune },
  'SDK 1.32': { revision: '2025-11-25', client: ClientV1, transport: TransportV1 },
  'SDK 2.4': { revision: '2025-11-25', client: ClientV2, transport: TransportV2 },
};

export interface PinnedOptions {
  capabilities?: Loose;
  /** Takes the place of the global `fetch`; for the oldest release, which can be given none, it does so everywhere. */
  fetch?: typeof fetch;
}

export interface PinnedClient {
  readonly sdk: Loose;
  readonly transport: Loose;
  /** Faults that the client reported out of band. */
  readonly errors: Error[];
  close(): Promise<void>;
}

/** Connects the client of a release, by its name in {@link PINNED}. */
export async function connectPinned(
  name: string,
  url: string,
  options: PinnedOptions = {},
): Promise<PinnedClient> {
  const { client: Client, transport: Transport } = PINNED[name] as (typeof PINNED)[string];
  const capabilities = options.capabilities ?? {};
  const sdk: Loose = new Client({ name: 'ExampleClient', version: '1.0.0' }, { capabilities });
  const transport: Loose = new Transport(new URL(url), { fetch: options.fetch });
  const errors: Error[] = [];
  sdk.onerror = (error: Error) => errors.push(error);
  const own = globalThis.fetch;
  if (options.fetch !== undefined && name === 'SDK 1.12.3') globalThis.fetch = options.fetch;
  await sdk.connect(transport);
  return {
    sdk,
    transport,
    errors,
    async close() {
      await transport.terminateSession().catch(() => {});
      await sdk.close();
      globalThis.fetch = own;
    },
  };
}
