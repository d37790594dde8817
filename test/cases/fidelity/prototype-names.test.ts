import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, startCell } from '../../support/cells.js';

/** Members of `Object.prototype`: a table that is a plain object has an entry for each of them. */
const NAMES = Object.getOwnPropertyNames(Object.prototype);

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell, {
      handshake: { version: '2024-11-05', capabilities: { sampling: {}, elicitation: {} } },
      route: { cache: { 'tools/list': '1m' } },
    });
    await rig.call('tools/list');
  });
  afterAll(() => rig.close());

  test.each(NAMES)('a method named %s is answered by the server like any unknown one', async (name) => {
    rig.on(name, ({ json, sendJson }) => {
      sendJson({ jsonrpc: '2.0', id: json.id, error: { code: -32601, message: `no ${name}` } });
    });
    const { json, headers } = await rig.call(name, {}, { id: 7 });
    expect(json).toMatchObject({ id: 7, error: { code: -32601 } });
    expect(headers['content-length']).not.toBe('undefined');
  });

  test.each(NAMES)('a content block of type %s reaches the client', async (name) => {
    rig.answer('tools/call', `{"content":[{"type":"${name}","text":"t"}]}`);
    const { json, status } = await rig.call('tools/call', { name: 'echo' });
    expect(status).toBe(200);
    expect(json['result']).toMatchObject({ content: [{ type: expect.any(String) }] });
  });

  test.each(NAMES)('a tool named %s can be called, also with an argument of that name', async (name) => {
    rig.answer('tools/call', '{"content":[]}');
    const { json } = await rig.call('tools/call', { name, arguments: JSON.parse(`{"${name}":1}`) });
    expect(json['result']).toMatchObject({ content: [] });
    expect(rig.sent('tools/call')).toContain(`"${name}":1`);
  });
});
