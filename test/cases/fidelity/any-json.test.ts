import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { objectText, valueText } from '../../jsonrpc/json-text.js';
import { CELLS, type Rig, raw, startCell } from '../../support/cells.js';

/** Line ends between tokens are white space, which an event of a stream cannot hold. */
const flat = (text: string) => text.replace(/[\r\n]/g, ' ');

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
  });
  afterAll(() => rig.close());

  test('any JSON passes in both directions, in answers of either framing', async () => {
    await fc.assert(
      fc.asyncProperty(
        objectText,
        objectText,
        valueText,
        fc.boolean(),
        async (args, structured, other, sse) => {
          const members = `"content":[],"structuredContent":${structured.text},"_meta":{"com.example/k":${other}},"x-vendor":${other}`;
          rig.on('tools/call', ({ id, sendJson, stream }) => {
            const { text } = rig.result(`{${members}}`).result;
            const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`;
            if (!sse) return void sendJson(body) as undefined;
            const events = stream();
            events.event(flat(body));
            return void events.end() as undefined;
          });
          const { answer, status } = await rig.call('tools/call', {
            name: 'echo',
            arguments: raw(args.text),
            'x-vendor': raw(other),
            _meta: { 'com.example/k': raw(other) },
          });
          expect(status).toBe(200);
          const sent = rig.sent('tools/call');
          expect(sent).toContain(`"arguments":${args.text}`);
          expect(sent).toContain(`"x-vendor":${other}`);
          expect(sent).toContain(`"com.example/k":${other}`);
          for (const part of [
            `"structuredContent":${structured.text}`,
            `"x-vendor":${other}`,
            `"com.example/k":${other}`,
          ])
            expect(flat(answer)).toContain(flat(part));
          rig.backend.requests.length = 0;
        },
      ),
      { numRuns: 60 },
    );
  });
});
