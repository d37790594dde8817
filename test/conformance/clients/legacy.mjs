// A client of the SDK's 1.x line.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

export const newTransport = (url, authProvider) => new StreamableHTTPClientTransport(url, { authProvider });

/** @param fill what forms are answered with, undefined where the client cannot be asked */
export function newClient(info, capabilities, fill) {
  const client = new Client(info, { capabilities });
  if (fill) {
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { ...fill } }));
  }
  return client;
}

export const finishLogin = (transport, answer) => transport.finishAuth(answer.get('code'));
