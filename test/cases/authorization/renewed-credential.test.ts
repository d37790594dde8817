import { describe, expect, test } from 'vitest';
import {
  ASKABLE,
  type AskingBackend,
  accept,
  asking,
  done,
  elicitation,
  startAskingBackend,
} from '../../questions/scripted.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startModernBackend } from '../../support/misbehave.js';
import { type Loose, until } from '../../support/net.js';
import { legacy, modern, open as openStream, send } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';
import { TASKS } from '../../tasks/task-server.js';

useVirtualTime();

const keep = keeper();

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
let serial = 0;
const jwt = (sub: string) =>
  `Bearer ${base64({ alg: 'RS256' })}.${base64({ iss: 'https://idp.example.com', sub, serial: ++serial })}.x`;
const CHALLENGE = 'Bearer error="invalid_token"';

/** Refuses the credentials that have expired, whatever is sent under them. */
function guard() {
  const expired = new Set<string | undefined>();
  const intercept = ({ headers, sendJson }: Loose): boolean => {
    if (!expired.has(headers.authorization)) return false;
    sendJson({ error: 'expired' }, 401, { 'www-authenticate': CHALLENGE });
    return true;
  };
  return { expired, intercept };
}

const gatewayTo = (url: string): Promise<TestGateway> => keep(startGateway({ '/mcp': url }));

/** A legacy client in the middle of a call that has asked it something. */
async function askedLegacyClient(url: string, authorization: string) {
  const session = await legacy(url, {
    headers: { authorization },
    capabilities: { elicitation: {} },
  });
  const stream = await openStream(url, {
    headers: session.headers,
    body: { jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'ask', arguments: { key: 'k' } } },
  });
  const message = async (): Promise<Loose> => {
    for (;;) {
      const { json } = await stream.next();
      if (json !== undefined) return json;
    }
  };
  const question = await message();
  const answer = (credential: string) =>
    send(url, {
      headers: { ...session.headers, authorization: credential },
      body: { jsonrpc: '2.0', id: question.id, result: accept('seven') },
    });
  return { answer, message, question };
}

const ask = (url: string, authorization: string, more: Loose = {}) =>
  modern(
    url,
    'tools/call',
    { name: 'ask', arguments: { key: 'k' }, ...more },
    { capabilities: ASKABLE, headers: { authorization } },
  );
const retryOf = ({ requestState, inputRequests }: Loose) => ({
  requestState,
  inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, accept('seven')])),
});

describe('the answer of a legacy client', () => {
  const backends = {
    'a legacy server': async () => {
      const { expired, intercept } = guard();
      return { expired, backend: await keep<ScriptedBackend>(startAskingBackend({ intercept })) };
    },
    'a modern server': async () => {
      const { expired, intercept } = guard();
      const on = {
        'tools/call': ({ params }: Loose) => ({
          result: params.inputResponses
            ? done(params.inputResponses.q.content.value)
            : asking({ q: elicitation('Which?') }),
        }),
      };
      return { expired, backend: await keep<ScriptedBackend>(startModernBackend({ intercept, on })) };
    },
  };

  describe.each(Object.entries(backends))('to %s', (_name, start) => {
    test('goes on with the credential that it came with, when that of the call has expired', async () => {
      const { expired, backend } = await start();
      const url = (await gatewayTo(backend.url)).url();
      const first = jwt('anna');
      const client = await askedLegacyClient(url, first);
      expired.add(first);
      expect((await client.answer(jwt('anna'))).status).toBe(202);
      expect((await client.message()).result.content[0].text).toBe('seven');
    });

    test('is refused with the challenge of the server, and taken with a better credential', async () => {
      const { expired, backend } = await start();
      const url = (await gatewayTo(backend.url)).url();
      const first = jwt('anna');
      const client = await askedLegacyClient(url, first);
      expired.add(first);
      const refused = await client.answer(first);
      expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, CHALLENGE]);
      expect((await client.answer(jwt('anna'))).status).toBe(202);
      expect((await client.message()).result.content[0].text).toBe('seven');
    });
  });
});

describe('a modern client that comes back with answers', () => {
  let backend: AskingBackend;
  let expired: Set<string | undefined>;
  let url: string;
  const start = async () => {
    const guarded = guard();
    expired = guarded.expired;
    backend = await keep(startAskingBackend({ intercept: guarded.intercept }));
    url = (await gatewayTo(backend.url)).url();
  };

  test('is served with a renewed credential, under which the answers go on', async () => {
    await start();
    const first = jwt('anna');
    const { result } = (await ask(url, first)).json;
    expired.add(first);
    const renewed = jwt('anna');
    expect((await ask(url, renewed, retryOf(result))).json.result.content[0].text).toBe('seven');
    expect(backend.answers.map(({ authorization }) => authorization)).toEqual([renewed]);
    expect(backend.calls).toHaveLength(1);
  });

  test('gets the challenge of the server, and finds the question open with a better credential', async () => {
    await start();
    const first = jwt('anna');
    const { result } = (await ask(url, first)).json;
    expired.add(first);
    for (let n = 0; n < 2; n++) {
      const refused = await ask(url, first, retryOf(result));
      expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, CHALLENGE]);
    }
    expect(backend.answers).toEqual([]);
    expect((await ask(url, jwt('anna'), retryOf(result))).json.result.content[0].text).toBe('seven');
    expect(backend.calls).toHaveLength(1);
  });

  test('is not believed to be the owner where the server does not know the credential', async () => {
    await start();
    const { result } = (await ask(url, jwt('anna'))).json;
    const forged = jwt('anna');
    expired.add(forged);
    const refused = await ask(url, forged, retryOf(result));
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, CHALLENGE]);
    expect(backend.answers).toEqual([]);
  });

  test('is refused with the credential of somebody else', async () => {
    await start();
    const { result } = (await ask(url, jwt('anna'))).json;
    const sent = backend.requests.length;
    const refused = await ask(url, jwt('bert'), retryOf(result));
    expect([refused.status, refused.json.error.code]).toEqual([400, -32602]);
    expect(backend.requests).toHaveLength(sent);
  });
});

describe('an answer that the server refuses since it knows the session no more', () => {
  const losing = () =>
    keep(
      startAskingBackend({
        intercept: ({ method, json, sendJson }) => {
          if (method !== 'POST' || json?.method !== undefined) return false;
          sendJson({ jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } }, 404);
          return true;
        },
      }),
    );

  test('ends the call of a legacy client', async () => {
    const url = (await gatewayTo((await losing()).url)).url();
    const credential = jwt('anna');
    const client = await askedLegacyClient(url, credential);
    await client.answer(credential);
    expect((await client.message()).error.message).toMatch(/lost the session/);
  });

  test('ends the call of a modern client', async () => {
    const backend = await losing();
    const url = (await gatewayTo(backend.url)).url();
    const credential = jwt('anna');
    const { result } = (await ask(url, credential)).json;
    const answer = await ask(url, credential, retryOf(result));
    expect([answer.status, answer.json.error.message]).toEqual([
      502,
      expect.stringMatching(/lost the session/),
    ]);
    await until(() => backend.cancels.length === 1, 'the cancellation');
  });
});

describe('a task', () => {
  const state = { status: 'working', ttl: 60_000, createdAt: '', lastUpdatedAt: '', pollInterval: 10 };
  const begin = async () => {
    const { expired, intercept } = guard();
    const backend = await keep(
      startAskingBackend({
        intercept,
        capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
        on: {
          'tools/list': () => ({
            result: {
              tools: [
                { name: 'long', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } },
              ],
            },
          }),
          'tools/call': () => ({ result: { task: { taskId: 'one', ...state } } }),
          'tasks/get': () => ({ result: { taskId: 'one', ...state } }),
        },
      }),
    );
    const url = (await gatewayTo(backend.url)).url();
    const first = jwt('anna');
    const capabilities = TASKS;
    const made = await modern(
      url,
      'tools/call',
      { name: 'long', arguments: {} },
      { capabilities, headers: { authorization: first } },
    );
    const { taskId } = made.json.result;
    const look = (authorization: string) =>
      modern(url, 'tasks/get', { taskId }, { capabilities, headers: { authorization } });
    return { expired, first, look };
  };

  test('can be looked at by its owner under a renewed credential', async () => {
    const { expired, first, look } = await begin();
    expired.add(first);
    expect((await look(jwt('anna'))).json.result.status).toBe('working');
    expect((await look(first)).status).toBe(401);
  });

  test('is not told of to anybody else', async () => {
    const { expired, look } = await begin();
    expect((await look(jwt('bert'))).json.error.message).toMatch(/not found/);
    const forged = jwt('anna');
    expired.add(forged);
    expect((await look(forged)).status).toBe(401);
  });
});
