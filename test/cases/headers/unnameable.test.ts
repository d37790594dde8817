import { describe, expect, test } from 'vitest';
import { startCell } from '../../support/cells.js';

describe('a legacy client of a modern backend', () => {
  test.each([
    ['tools/call', {}],
    ['tools/call', { name: 7 }],
    ['tools/call', { name: null }],
    ['prompts/get', {}],
    ['resources/read', { uri: ['a'] }],
  ])('is told that %s %j names nothing, and the backend is not asked', async (method, params) => {
    const rig = await startCell('LM');
    try {
      const { json, status } = await rig.call(method, params, { id: 3 });
      expect(status).toBe(200);
      expect(json).toMatchObject({
        id: 3,
        error: { code: -32602, message: expect.stringContaining('string') },
      });
      expect(rig.backend.received(method)).toEqual([]);
    } finally {
      await rig.close();
    }
  });
});

describe('tasks, which mean another thing in each era', () => {
  test.each(['tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel', 'tasks/update'])(
    'are unknown to a server of the other era: %s',
    async (method) => {
      for (const cell of ['LM', 'ML'] as const) {
        const rig = await startCell(cell);
        try {
          const { json, status } = await rig.call(method, { taskId: 't' }, { id: 3 });
          expect(json).toMatchObject({ id: 3, error: { code: -32601 } });
          expect(status).toBe(cell === 'ML' ? 404 : 200);
          expect(rig.backend.received(method)).toEqual([]);
        } finally {
          await rig.close();
        }
      }
    },
  );

  test('pass within an era', async () => {
    for (const cell of ['LL', 'MM'] as const) {
      const rig = await startCell(cell);
      try {
        rig.answer('tasks/get', '{"taskId":"t","status":"working"}');
        const { json } = await rig.call('tasks/get', { taskId: 't' }, { id: 3 });
        expect(json).toMatchObject({ id: 3, result: { taskId: 't', status: 'working' } });
      } finally {
        await rig.close();
      }
    }
  });
});
