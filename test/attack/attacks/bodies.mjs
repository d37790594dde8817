// Bodies that are small on the wire and large or odd when they are read.

import { gzipSync } from 'node:zlib';
import { CALL, check, each, initializeRequest, modernRequest, openSession, send } from '../wire.mjs';

const GZIP = { 'content-encoding': 'gzip' };
/** Reading takes some 0.2 us for each: 300,000 take up to 70 ms. */
const MANY = 150_000;
const members = (count) => Array.from({ length: count }, (_, i) => `"${i.toString(36)}":0`).join(',');
const nested = (levels) => `${'{"a":'.repeat(levels)}0${'}'.repeat(levels)}`;

/** Sends a body again and again, and expects a refusal each time. */
async function refused(url, body, headers, count) {
  const packed = gzipSync(body);
  await each(count, 32, async () => {
    const { status, text } = await send(url, { headers: { ...headers, ...GZIP }, body: packed });
    check(status === 400 || status === 413, `expected a refusal, got ${status} ${text.slice(0, 100)}`);
  });
}

export const bodies = [
  {
    name: 'compressed handshakes that declare megabytes',
    run: ({ route, quick }) =>
      refused(
        route('legacy'),
        initializeRequest({ capabilities: `{"experimental":{"a":"${'x'.repeat(4_000_000)}"}}` }),
        {},
        quick ? 40 : 116,
      ),
  },
  {
    name: 'handshakes that declare as much as they may',
    async run({ route }) {
      await each(400, 16, async (i) => {
        const capabilities = `{"experimental":{"${i}${'x'.repeat(15_000)}":{}}}`;
        const clientInfo = `{"name":"${'n'.repeat(60_000)}${i}","version":"1"}`;
        const { status } = await send(route('legacy'), {
          body: initializeRequest({ capabilities, clientInfo }),
        });
        check(status === 200 || status === 503, `expected a session, got ${status}`);
      });
    },
  },
  {
    name: '150,000 members in _meta',
    async run({ route }) {
      const { headers, body } = modernRequest('tools/list', '', { meta: members(MANY) });
      await refused(route('modern'), body, headers, 20);
      const session = await openSession(route('legacy'));
      const legacy = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{${members(MANY)}}}}`;
      await refused(route('legacy'), legacy, session, 20);
    },
  },
  {
    name: '150,000 members in params and in the message',
    async run({ route }) {
      const { headers, body } = modernRequest('tools/list', members(MANY));
      await refused(route('modern'), body, headers, 20);
      await refused(route('legacy'), `{${members(MANY)}}`, {}, 20);
    },
  },
  {
    name: 'capabilities thousands of levels deep',
    async run({ route }) {
      const { headers, body } = modernRequest('tools/list', '', { capabilities: nested(3_000) });
      await refused(route('modern'), body, headers, 200);
      await refused(route('legacy'), initializeRequest({ capabilities: nested(3_000) }), {}, 200);
      await refused(route('modern'), '['.repeat(2_000_000), {}, 10);
    },
  },
  {
    name: 'large arguments, valid and compressed',
    async run({ route }) {
      const { headers, body } = modernRequest(
        'tools/call',
        `"name":"echo","arguments":{"a":"${'x'.repeat(4_000_000)}"}`,
        { name: 'echo' },
      );
      const packed = gzipSync(body);
      await each(60, 8, async () => {
        const { status } = await send(route('modern'), { headers: { ...headers, ...GZIP }, body: packed });
        check(status === 200, `expected a result, got ${status}`);
      });
    },
  },
  {
    name: 'methods and tools named like members of Object.prototype',
    async run({ route }) {
      const names = Object.getOwnPropertyNames(Object.prototype);
      const session = await openSession(route('legacy'));
      for (const name of names) {
        const { headers, body } = modernRequest(name);
        const answers = await Promise.all([
          send(route('modern'), { headers, body, timeoutMs: 5_000 }),
          send(route('legacy'), {
            headers: session,
            body: `{"jsonrpc":"2.0","id":1,"method":"${name}"}`,
            timeoutMs: 5_000,
          }),
          send(route('modern'), {
            ...CALL(),
            headers: { ...CALL().headers, [`mcp-param-${name.toLowerCase()}`]: '1' },
            timeoutMs: 5_000,
          }),
        ]);
        for (const { status, text } of answers)
          check(status >= 200 && status < 500, `${name}: ${status} ${text.slice(0, 100)}`);
      }
    },
  },
];
