import { describe, expect, test } from 'vitest';
import { ToolIndex } from '../../../../src/eras/modern/backend/tool-index.js';
import { parseLenientFrame, type ResultFrame } from '../../../../src/jsonrpc/index.js';

const page = (names: string[], nextCursor?: string): ResultFrame => {
  const tools = names.map((name) => ({ name, inputSchema: { type: 'object' } }));
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools, nextCursor } });
  return parseLenientFrame(Buffer.from(text)) as ResultFrame;
};
/** Pages by cursor, and the cursors that were fetched. */
const pagesOf = (pages: Record<string, ResultFrame | undefined>) => {
  const asked: (string | undefined)[] = [];
  return {
    asked,
    fetch: async (cursor: string | undefined) => {
      asked.push(cursor);
      return pages[cursor ?? ''];
    },
  };
};

describe('the tools of a backend', () => {
  test('are read to the last page, once for concurrent calls', async () => {
    const index = new ToolIndex();
    const { asked, fetch } = pagesOf({ '': page(['a'], 'x'), x: page(['b', 'c'], 'y'), y: page(['d']) });
    const maps = await Promise.all([index.get('k', fetch), index.get('k', fetch)]);
    expect([...(maps[0]?.keys() ?? [])]).toEqual(['a', 'b', 'c', 'd']);
    expect(maps[1]).toBe(maps[0]);
    await index.get('k', fetch);
    expect(asked).toEqual([undefined, 'x', 'y']);
  });

  test('are separate for each caller', async () => {
    const index = new ToolIndex();
    const ann = await index.get('ann', pagesOf({ '': page(['a']) }).fetch);
    const bob = await index.get('bob', pagesOf({ '': page(['b']) }).fetch);
    expect([[...ann.keys()], [...bob.keys()]]).toEqual([['a'], ['b']]);
  });

  test('are read again once forgotten, and after a failure', async () => {
    const index = new ToolIndex();
    const { asked, fetch } = pagesOf({ '': page(['a']) });
    await index.get('k', fetch);
    index.forget('k');
    await index.get('k', fetch);
    expect(asked).toHaveLength(2);
    await expect(index.get('other', () => Promise.reject(new Error('down')))).rejects.toThrow('down');
    expect((await index.get('other', fetch)).size).toBe(1);
  });

  test.each([
    ['an error', { '': undefined }, 0],
    ['an error on the second page', { '': page(['a'], 'x'), x: undefined }, 1],
    ['a cursor that leads to itself', { '': page(['a'], 'x'), x: page(['b'], 'x') }, 2],
  ])('are those of the pages before %s', async (_what, pages, count) => {
    const { fetch } = pagesOf(pages);
    expect((await new ToolIndex().get('k', fetch)).size).toBe(count);
  });

  test('are those of a hundred pages of a list without an end', async () => {
    let n = 0;
    const map = await new ToolIndex().get('k', async () => page([`t${n}`], String(++n)));
    expect(map.size).toBe(100);
  });
});
