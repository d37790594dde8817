import { expect, test } from 'vitest';
import { CELLS, startCell } from '../../support/cells.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const KINDS = [
  ['tools/list', 'tools'],
  ['prompts/list', 'prompts'],
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resourceTemplates'],
] as const;
/** Cursors are the backend's own business. */
const CURSORS = ['8', '', 'eyJwIjoyfQ==', 'a b/ü"\\', '{"page":2}', '\u2028', 'x'.repeat(4_000)];

const item = (n: number) => ({ name: `n${n}`, inputSchema: { type: 'object' }, uri: `a:${n}` });

test.each(CELLS)(
  '%s: every page of every list comes, by the cursor as the backend wrote it',
  async (cell) => {
    const rig = await startCell(cell, {
      script: { capabilities: { tools: {}, prompts: {}, resources: {} } },
    });
    try {
      for (const [method, member] of KINDS) {
        for (const cursor of CURSORS) {
          const pages = [Array.from({ length: 8 }, (_, n) => item(n)), [8, 9, 10, 11, 12, 13].map(item)];
          rig.on(method, ({ params }) => {
            const second = params?.cursor === cursor;
            const next = second ? '' : `,"nextCursor":${JSON.stringify(cursor)}`;
            return rig.result(`{"${member}":${JSON.stringify(pages[second ? 1 : 0])}${next}}`);
          });
          const first = (await rig.call(method, {})).json.result;
          expect(first[member]).toEqual(pages[0]);
          expect(first.nextCursor).toBe(cursor);
          const second = (await rig.call(method, { cursor: first.nextCursor })).json.result;
          expect(second[member]).toEqual(pages[1]);
          expect(second).not.toHaveProperty('nextCursor');
          expect(rig.backend.received(method).at(-1)?.json.params.cursor).toBe(cursor);
        }
      }
    } finally {
      await rig.close();
    }
  },
);

test.each(['LM', 'ML', 'MM'] as const)(
  '%s: a cursor of null, which clients refuse the list for, is none',
  async (cell) => {
    const rig = await startCell(cell, {
      script: { capabilities: { tools: {}, prompts: {}, resources: {} } },
    });
    try {
      for (const [method, member] of KINDS) {
        rig.answer(method, `{"nextCursor": null,"${member}":[${JSON.stringify(item(1))}]}`);
        const { result } = (await rig.call(method)).json;
        expect(result).toMatchObject({ [member]: [{ name: 'n1' }] });
        expect(result).not.toHaveProperty('nextCursor');
      }
    } finally {
      await rig.close();
    }
  },
);

test.each(CELLS)('%s: a cursor that the backend does not take is its error to tell', async (cell) => {
  const rig = await startCell(cell);
  try {
    rig.on('tools/list', ({ params }) =>
      params?.cursor === undefined
        ? rig.result('{"tools":[],"nextCursor":"a"}')
        : { error: { code: -32602, message: 'Invalid cursor' } },
    );
    await rig.call('tools/list');
    const { json } = await rig.call('tools/list', { cursor: 'forged' });
    expect(json.error).toEqual({ code: -32602, message: 'Invalid cursor' });
  } finally {
    await rig.close();
  }
});

test.each(['LM', 'MM'] as const)('%s: a tool of the third page can be called', async (cell) => {
  const rig = await startCell(cell);
  try {
    rig.on('tools/list', ({ params }) => {
      const page = Number(params?.cursor ?? 1);
      return rig.result(
        `{"tools":[{"name":"t${page}","inputSchema":{"type":"object"}}]${page < 3 ? `,"nextCursor":"${page + 1}"` : ''}}`,
      );
    });
    const { json } = await rig.call('tools/call', { name: 't3', arguments: { a: 1 } });
    expect(json.result.structuredContent).toEqual({ a: 1 });
  } finally {
    await rig.close();
  }
});

test.each([
  ['MM', '"ttlMs":60000,"cacheScope":"public",', {}],
  ['LM', '"ttlMs":60000,"cacheScope":"private",', {}],
  ['ML', '', { cache: { 'tools/list': '60s', 'resources/list': '60s' } }],
] as const)('%s: a page that is kept is not taken for another one', async (cell, hints, route) => {
  const rig = await startCell(cell, { route });
  try {
    for (const [method, member] of [KINDS[0], KINDS[2]]) {
      rig.on(method, ({ params }) => {
        const page = Number(params?.cursor ?? 1);
        const next = page < 3 ? `,"nextCursor":"${page + 1}"` : '';
        return rig.result(`{${hints}"${member}":${JSON.stringify([item(page)])}${next}}`);
      });
      for (let round = 0; round < 2; round++) {
        for (const page of [1, 2, 3]) {
          const params = page === 1 ? {} : { cursor: String(page) };
          const { result } = (await rig.call(method, params)).json;
          expect(result[member]).toEqual([item(page)]);
          expect(result.nextCursor).toBe(page < 3 ? String(page + 1) : undefined);
        }
      }
      expect(rig.backend.received(method)).toHaveLength(3);
    }
  } finally {
    await rig.close();
  }
});
