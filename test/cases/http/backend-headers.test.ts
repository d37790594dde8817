import { expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { legacy, modern } from '../../support/raw.js';

test.each(['legacy', 'modern'])(
  'an answer of a %s backend may have more headers than node takes by itself',
  async (era) => {
    const start = era === 'legacy' ? startLegacyBackend : startModernBackend;
    const backend = await start({
      on: {
        'tools/call': ({ sendJson, frame }) => {
          const result = { resultType: 'complete', content: [] };
          const policy = Object.fromEntries(['a', 'b', 'c'].map((name) => [`x-${name}`, 'y'.repeat(10_000)]));
          sendJson(frame({ result }), 200, policy);
          return undefined;
        },
      },
    });
    const gateway = await startGateway({ '/mcp': backend.url });
    try {
      const params = { name: 'echo' };
      expect((await modern(gateway.url(), 'tools/call', params)).json.result).toMatchObject({ content: [] });
      const client = await legacy(gateway.url());
      expect((await client.request('tools/call', params)).json.result).toMatchObject({ content: [] });
    } finally {
      await gateway.close();
      await backend.close();
    }
  },
);
