import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, startCell } from '../../support/cells.js';

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
    await rig.call('tools/list');
  });
  afterAll(() => rig.close());

  test('no request to the server has the id 0, which some servers take for none', () => {
    const ids = rig.backend.requests.map(({ body }) => JSON.parse(body.toString() || '{}').id);
    expect(ids.filter((id) => id !== undefined).length).toBeGreaterThan(0);
    expect(ids).not.toContain(0);
  });

  test.each([
    ['vendor/news', '{"n":1.0}', '{"n":1.0}'],
    ['notifications/claude/channel', '{"content":"c"}', '{"content":"c"}'],
    ['vendor/news', 'null', undefined],
    ['vendor/news', '[]', undefined],
  ])(
    'a notification %s of the server with params %s, on the stream of a call, reaches its client',
    async (method, params, kept) => {
      rig.on('tools/call', ({ json, stream }) => {
        const events = stream();
        events.event(`{"jsonrpc":"2.0","method":"${method}","params":${params}}`);
        events.event(
          `{"jsonrpc":"2.0","id":${JSON.stringify(json.id)},"result":{"resultType":"complete","content":[]}}`,
        );
        return void events.end() as undefined;
      });
      const { events, json } = await rig.call('tools/call', { name: 'echo' });
      expect(json).toMatchObject({ result: { content: [] } });
      expect(events.map(({ data }) => data)[0]).toBe(
        `{"jsonrpc":"2.0","method":"${method}"${kept === undefined ? '' : `,"params":${kept}`}}`,
      );
    },
  );

  if (cell[0] === 'L') {
    test('a request and a notification of a client with params null are served as if it had left them out', async () => {
      const session = await rig.session();
      const request = await session.post('{"jsonrpc":"2.0","id":9,"method":"tools/list","params":null}');
      expect(request.json).toMatchObject({ id: 9, result: { tools: expect.any(Array) } });
      const notification = await session.post(
        '{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":null}',
      );
      expect(notification.status).toBe(202);
    });
  }
});
