// A client of the SDK's 2.x line, which speaks 2026-07-28 and nothing else.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

export const newTransport = (url, authProvider) => new StreamableHTTPClientTransport(url, { authProvider });

/** @param fill what forms are answered with, undefined where the client cannot be asked */
export function newClient(info, capabilities, fill) {
  const client = new Client(info, { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } });
  if (fill) {
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ...fill } }));
  }
  return client;
}

export const finishLogin = (transport, answer) => transport.finishAuth(answer);
