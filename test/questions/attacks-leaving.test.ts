import { expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { startModernBackend } from '../support/misbehave.js';
import { sleep, until } from '../support/net.js';
import { legacy, open } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { ModernCaller, startAskingBackend } from './scripted.js';

useVirtualTime();

test('a client that leaves while it is found out whose its state is has made no call', async () => {
  const backend = await startModernBackend();
  const discover = { supportedVersions: ['2026-07-28'], capabilities: {}, ttlMs: 0, cacheScope: 'private' };
  backend.on('server/discover', async () => {
    await sleep(400);
    return { result: { resultType: 'complete', ...discover } };
  });
  const gateway = await startGateway({ '/mcp': backend.url });
  try {
    const leaving = new AbortController();
    const call = new ModernCaller(gateway.url(), {}).retry('of the backend', {}, { signal: leaving.signal });
    call.catch(() => {});
    await sleep(100);
    leaving.abort();
    await sleep(600);
    expect(backend.received('server/discover')).toHaveLength(1);
    expect(backend.received('tools/call')).toEqual([]);
    // One that stays is served.
    const answer = await new ModernCaller(gateway.url(), {}).retry('of the backend', {});
    expect(answer.json.result.resultType).toBe('complete');
  } finally {
    await gateway.close();
    await backend.close();
  }
});

/** A bearer token that names its owner; nobody verifies it here. */
function token(serial: number): Record<string, string> {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const jwt = `${part({ alg: 'none' })}.${part({ iss: 'https://issuer.example', sub: 'ada', jti: serial })}.x`;
  return { authorization: `Bearer ${jwt}` };
}

test('a stream whose client left before it began is not kept as the one on which the client can be asked', async () => {
  const backend = await startAskingBackend({}, async ({ push }) => {
    const { error } = await push('elicitation/create', { message: '?' });
    return { content: [{ type: 'text', text: `${error.code}` }] };
  });
  const gateway = await startGateway({ '/mcp': backend.url });
  try {
    const session = await legacy(gateway.url(), { capabilities: { elicitation: {} }, headers: token(1) });
    // The backend takes its time to tell whether the renewed credential is good.
    backend.on('ping', async () => {
      await sleep(300);
      return { result: {} };
    });
    const leaving = new AbortController();
    const stream = open(gateway.url(), {
      headers: { ...session.headers, ...token(2), accept: 'text/event-stream' },
      signal: leaving.signal,
    });
    stream.catch(() => {});
    await sleep(100);
    leaving.abort();
    await sleep(400);
    expect(backend.streams.filter((getStream) => !getStream.stream.closed)).toEqual([]);
    // A stream of a client that is there is taken as ever.
    const getStream = await session.listen({ ...token(2) });
    await until(() => backend.streams.some((one) => !one.stream.closed), 'the stream of the backend');
    getStream.abort();
  } finally {
    await gateway.close();
    await backend.close();
  }
});
