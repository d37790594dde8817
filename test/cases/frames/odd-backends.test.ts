import { describe, expect, test } from 'vitest';
import { CELLS, raw, startCell } from '../../support/cells.js';
import { connect } from '../../support/clients.js';
import { legacy, modern } from '../../support/raw.js';

describe.each(CELLS)('%s', (cell) => {
  test.each(['true', '1', '"yes"', 'null', '[]', '[{}]'])(
    'a capability that is %s is not taken as support, and costs nobody anything',
    async (value) => {
      const script = {
        capabilities: { tools: raw(value), prompts: {}, logging: raw(value), 'x-vendor': true },
      };
      const rig = await startCell(cell, { script });
      try {
        const { result } = rig.modernClient
          ? (await rig.call('server/discover')).json
          : (await rig.session()).initialize.json;
        expect(result.capabilities).toEqual({ prompts: expect.any(Object), 'x-vendor': true });
        const client = await connect(rig.modernClient ? 'v2 pin' : 'v1', rig.gateway.url());
        await client.close();
        expect((await rig.call('tools/list')).json.result.tools).toHaveLength(1);
      } finally {
        await rig.close();
      }
    },
  );

  test.each(['true', 'null', '[]', '"x"'])('capabilities that are %s are none', async (value) => {
    const rig = await startCell(cell, { script: { capabilities: raw(value) } });
    try {
      const { result } = rig.modernClient
        ? (await rig.call('server/discover')).json
        : (await rig.session()).initialize.json;
      expect(result.capabilities).toEqual({});
    } finally {
      await rig.close();
    }
  });
});

test('ML: a server is never told of questions that its caller cannot be asked', async () => {
  const rig = await startCell('ML');
  try {
    await modern(rig.gateway.url(), 'tools/call', { name: 'echo' }, { capabilities: {} });
    expect(rig.backend.received('initialize')[0]?.json.params.capabilities).toEqual({});
  } finally {
    await rig.close();
  }
});

test.each(['LL', 'ML'] as const)('%s: an SDK’s own error codes stay what they are', async (cell) => {
  const rig = await startCell(cell);
  try {
    for (const code of [-32000, -32001]) {
      rig.on('tools/call', () => ({ error: { code, message: 'Connection closed', data: { k: 1 } } }));
      const { json } = await rig.call('tools/call', { name: 'echo' }, { id: 1 });
      expect(json).toEqual({
        jsonrpc: '2.0',
        id: 1,
        error: { code, message: 'Connection closed', data: { k: 1 } },
      });
    }
  } finally {
    await rig.close();
  }
});

test.each(['LL', 'LM'] as const)(
  '%s: the capabilities of the backend are those of the session',
  async (cell) => {
    const rig = await startCell(cell, {
      script: {
        capabilities: { tools: {}, completions: {}, experimental: { 'com.example': { v: 1 } } },
        instructions: 'Do.',
        serverInfo: { name: 's', version: '2', title: 'T' },
      },
    });
    try {
      for (const version of [
        '2024-11-05',
        '2025-03-26',
        '2025-06-18',
        '2025-11-25',
        '2026-07-28',
        '1999-01-01',
      ]) {
        const { initialize, initialized } = await legacy(rig.gateway.url(), { version });
        const known = version.startsWith('202') && version < '2026';
        expect(initialize.json.result).toEqual({
          protocolVersion: known ? version : '2025-11-25',
          capabilities: { tools: {}, completions: {}, experimental: { 'com.example': { v: 1 } } },
          serverInfo: { name: 's', version: '2', title: 'T' },
          instructions: 'Do.',
        });
        expect(initialized?.status).toBe(202);
      }
    } finally {
      await rig.close();
    }
  },
);
