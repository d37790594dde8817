import { LRUCache } from 'lru-cache';
import { elementsOf, getMember, type ResultFrame, stringOf } from '../../../jsonrpc/index.js';
import { type ToolMap, type ToolTraits, toolTraits } from '../wire/tool-traits.js';

/** Fetches one page of `tools/list`; undefined where the backend answers with an error. */
export type PageFetcher = (cursor: string | undefined) => Promise<ResultFrame | undefined>;

const KEPT_MS = 60_000;
const MAX_INDEXES = 500;
/** A list that does not end is cut here. */
const MAX_PAGES = 100;

interface Entry {
  readonly at: number;
  readonly tools: Promise<ToolMap>;
}

/** The tools of a modern backend as its callers see them, by caller: lists may differ by authorization. */
export class ToolIndex {
  readonly #entries = new LRUCache<string, Entry>({ max: MAX_INDEXES });

  /** All pages, fetched once for callers that come at once. */
  get(key: string, fetchPage: PageFetcher): Promise<ToolMap> {
    const known = this.#entries.get(key);
    if (known !== undefined && performance.now() - known.at < KEPT_MS) return known.tools;
    const tools = readPages(fetchPage);
    this.#entries.set(key, { at: performance.now(), tools });
    tools.catch(() => this.forget(key));
    return tools;
  }

  /** The lists have changed. */
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
      const facts = toolTraits(bytes, tool);
      if (name !== undefined && facts !== undefined) tools.set(name, facts);
    }
    const next = stringOf(bytes, getMember(bytes, result, 'nextCursor'));
    if (next === undefined || next === cursor) break;
    cursor = next;
  }
  return tools;
}
