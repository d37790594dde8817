// Servers that are hostile, or far too talkative.

import { CALL, check, each, modernRequest, openSession, send } from '../wire.mjs';

/** Calls a server and expects that it ends, with whatever outcome. */
async function ends(url, count, atOnce = 4) {
  await each(count, atOnce, async () => {
    const { status, text } = await send(url, { ...CALL(), timeoutMs: 20_000 });
    check(status >= 200, `the call did not end: ${text}`);
  });
}

const HOSTILE = ['text', 'comments', 'event', 'json', 'bomb', 'headers', 'garbage', 'deep'];

export const servers = [
  {
    name: 'lists of thousands of tools',
    async run({ route }) {
      const { headers, body } = modernRequest('tools/list');
      for (const era of ['legacy', 'modern']) {
        const session = await openSession(route(`${era}/lists`));
        for (let i = 0; i < 3; i++) {
          const results = [
            await send(route(`${era}/lists`), { headers, body }),
            await send(route(`${era}/lists`), {
              headers: session,
              body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
            }),
          ];
          for (const { status } of results) check(status === 200, `expected the list, got ${status}`);
        }
      }
    },
  },
  ...HOSTILE.map((kind) => ({
    name: `a server that answers with ${kind}`,
    run: ({ route, quick }) => ends(route(`modern/hostile/${kind}`), quick ? 4 : 40),
  })),
  {
    name: 'metadata at a host that a challenge hides in a path',
    async run({ route, origin, backend }) {
      await send(route('modern/challenge'), CALL());
      const { text } = await send(`${origin}/.well-known/oauth-protected-resource/modern/challenge`, {
        method: 'GET',
      });
      check(!text.includes('trapped'), 'the answer of another host was handed on');
      check((await backend()).trapped === 0, 'another host was asked');
    },
  },
];
