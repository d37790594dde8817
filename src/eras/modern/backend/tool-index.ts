import { LRUCache } from 'lru-cache';
import { elementsOf, getMember, type ResultFrame, stringOf } from '../../../jsonrpc/index.js';
import { type ToolMap, type ToolTraits, toolTraits } from '../wire/tool-traits.js';

/** Fetches one page of `tools/list`; undefined if the backend responds with an error. */
export type PageFetcher = (cursor: string | undefined) => Promise<ResultFrame | undefined>;

/** How long a list is used before it is read again. */
const TTL_MS = 60_000;
const MAX_LISTS = 500;
/** Limit for a list whose cursors do not end. */
const MAX_PAGES = 100;

interface Entry {
  readonly at: number;
  readonly tools: Promise<ToolMap>;
}

/** Caches the traits of a modern backend's tools for each caller: lists may differ by authorization. */
export class ToolIndex {
  readonly #entries = new LRUCache<string, Entry>({ max: MAX_LISTS });

  /** The tools of all pages; concurrent calls share one fetch. */
  get(key: string, fetchPage: PageFetcher): Promise<ToolMap> {
    const known = this.#entries.get(key);
    if (known !== undefined && performance.now() - known.at < TTL_MS) return known.tools;
    const tools = readPages(fetchPage);
    this.#entries.set(key, { at: performance.now(), tools });
    tools.catch(() => this.forget(key));
    return tools;
  }

  /** Forgets all lists, after a change. */
  clear(): void {
    this.#entries.clear();
  }

  forget(key: string): void {
    this.#entries.delete(key);
  }
}

async function readPages(fetchPage: PageFetcher): Promise<ToolMap> {
  const tools = new Map<string, ToolTraits>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const frame = await fetchPage(cursor);
    if (frame === undefined) break;
    const { bytes, result } = frame;
    const list = getMember(bytes, result, 'tools');
    for (const tool of list?.kind === 'array' ? elementsOf(bytes, list) : []) {
      const name = stringOf(bytes, getMember(bytes, tool, 'name'));
      const traits = toolTraits(bytes, tool);
      if (name !== undefined && traits !== undefined) tools.set(name, traits);
    }
    const next = stringOf(bytes, getMember(bytes, result, 'nextCursor'));
    if (next === undefined || next === cursor) break;
    cursor = next;
  }
  return tools;
}
