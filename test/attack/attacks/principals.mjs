// Callers that take more than their share, or what is not theirs.

import { CALL, check, each, initializeRequest, modernRequest, openSession, send } from '../wire.mjs';

const GREEDY = { authorization: 'Bearer greedy' };
const OTHER = { authorization: 'Bearer other' };
const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';

/** A text with one character replaced. */
function forged(text, at) {
  const index = at % text.length;
  return `${text.slice(0, index)}${text[index] === 'A' ? 'B' : 'A'}${text.slice(index + 1)}`;
}

export const principals = [
  {
    name: 'one caller that fills a route with calls that hang',
    async run({ route }) {
      const hang = route('modern/hostile/hang');
      const { headers, body } = CALL();
      // More than one caller may have in flight; see the limits of the run.
      const hanging = Array.from({ length: 150 }, () =>
        send(hang, { headers: { ...headers, ...GREEDY }, body, timeoutMs: 2_000 }),
      );
      const { headers: listHeaders, body: list } = modernRequest('tools/list');
      await each(40, 2, async () => {
        const { status } = await send(hang, { headers: { ...listHeaders, ...OTHER }, body: list });
        check(status === 200, `another caller got ${status}`);
      });
      const statuses = (await Promise.all(hanging)).map(({ status }) => status);
      check(statuses.includes(503), 'no call was refused');
    },
  },
  {
    name: 'handshakes that hang',
    async run({ route }) {
      const hanging = Array.from({ length: 60 }, () =>
        send(route('legacy/shaking'), { headers: GREEDY, body: initializeRequest(), timeoutMs: 1_500 }),
      );
      await new Promise((resolve) => setTimeout(resolve, 300));
      const { status, text } = await send(route('legacy/shaking'), {
        headers: OTHER,
        body: initializeRequest(),
      });
      check(
        status === 200 && text.includes('"result"'),
        `another caller got ${status} ${text.slice(0, 200)}`,
      );
      await Promise.all(hanging);
    },
  },
  {
    name: 'sessions by the hundred',
    async run({ route }) {
      await each(600, 32, async () => {
        await openSession(route('legacy'), GREEDY);
      });
    },
  },
  {
    name: 'session ids that are forged, swapped and ended',
    async run({ route }) {
      const own = await openSession(route('legacy'), GREEDY);
      const id = own['mcp-session-id'];
      const tries = [
        ...Array.from({ length: 200 }, (_, i) => ({ ...own, 'mcp-session-id': forged(id, i * 7) })),
        { ...own, 'mcp-session-id': id.slice(0, -1) },
        { ...own, 'mcp-session-id': `${id}A` },
        { ...own, 'mcp-session-id': 'x'.repeat(30_000) },
        { ...own, ...OTHER },
      ];
      for (const headers of tries) {
        const { status } = await send(route('legacy'), { headers, body: LIST });
        check([400, 401, 404].includes(status), `a forged session got ${status}`);
      }
      const swapped = await send(route('legacy/lists'), { headers: own, body: LIST });
      check(swapped.status === 404, `the session of another route got ${swapped.status}`);
      await send(route('legacy'), { method: 'DELETE', headers: own });
      const ended = await send(route('legacy'), { headers: own, body: LIST });
      check(ended.status === 404, `an ended session got ${ended.status}`);
    },
  },
  {
    name: 'states of calls that are forged',
    async run({ route }) {
      const { headers } = CALL();
      await each(200, 16, async (i) => {
        const state = Buffer.from(`state ${i}`.repeat(i)).toString('base64url');
        const { body } = modernRequest(
          'tools/call',
          `"name":"echo","arguments":{},"requestState":"${state}","inputResponses":{}`,
          { name: 'echo' },
        );
        const { status } = await send(route('modern'), { headers, body });
        check(status > 0 && status < 500, `a forged state got ${status}`);
      });
    },
  },
];
