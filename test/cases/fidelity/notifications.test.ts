import { describe, expect, test } from 'vitest';
import { CELLS, startCell } from '../../support/cells.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const LOG =
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"\\u0041","data":{"d":1.0,"2":1,"1":12345678901234567890,"dup":1,"dup":2},"_meta":{"k":1E2}}}';

describe.each(CELLS)('%s', (cell) => {
  test('log messages of a call pass byte for byte, also those among others in an array', async () => {
    const rig = await startCell(cell, { script: { capabilities: { tools: {}, logging: {} } } });
    try {
      if (!rig.modernClient) await (await rig.session()).request('logging/setLevel', { level: 'debug' });
      rig.on('tools/call', ({ id, frame, stream }) => {
        const events = stream();
        events.event(LOG);
        if (!rig.modernBackend) events.event(`[ ${LOG} , ${LOG} ]`);
        events.event({ ...frame(rig.result('{"content":[]}')), id });
        return void events.end() as undefined;
      });
      const meta = { 'io.modelcontextprotocol/logLevel': 'info' };
      const { events, json } = await rig.call(
        'tools/call',
        { name: 'echo' },
        rig.modernClient ? { meta } : {},
      );
      expect(json.result).toBeDefined();
      const logs = events.slice(0, -1).map(({ data }) => data);
      expect(logs).toEqual(Array.from({ length: rig.modernBackend ? 1 : 3 }, () => LOG));
    } finally {
      await rig.close();
    }
  });
});

describe('what a legacy server says on the stream of a call', () => {
  const UNASKED = [
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"x"}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"no-level","data":"x"}}',
    '{"jsonrpc":"2.0","method":"notifications/message"}',
    '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
    '{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t"}}',
  ];

  test('reaches a modern client as far as that asked for it', async () => {
    const rig = await startCell('ML', { script: { capabilities: { tools: {}, logging: {} } } });
    try {
      rig.on('tools/call', ({ id, frame, stream }) => {
        const events = stream();
        for (const note of [...UNASKED, LOG]) events.event(note);
        events.event({ ...frame(rig.result('{"content":[]}')), id });
        return void events.end() as undefined;
      });
      const meta = { 'io.modelcontextprotocol/logLevel': 'warning' };
      const asked = await rig.call('tools/call', { name: 'echo' }, { meta });
      expect(asked.events.slice(0, -1).map(({ data }) => data)).toEqual([LOG]);
      const silent = await rig.call('tools/call', { name: 'echo' });
      expect(silent.messages).toEqual([]);
      expect(silent.json.result).toBeDefined();
    } finally {
      await rig.close();
    }
  });
});
