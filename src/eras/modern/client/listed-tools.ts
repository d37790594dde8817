import { LRUCache } from 'lru-cache';
import type { HttpCall } from '../../../downstream/http-call.js';
import { type Caller, identityOf } from '../../../exchange/caller.js';
import type { ResultOutcome } from '../../../exchange/outcome.js';
import { elementsOf, getMember, type JsonNode, type RequestFrame, stringOf } from '../../../jsonrpc/index.js';
import { mentionsAnnotation, type ParamHeader } from '../wire/header-annotations.js';
import { paramHeaderProblem } from '../wire/param-headers.js';
import { toolTraits } from '../wire/tool-traits.js';

const MAX_LISTS = 1_000;
const MAX_TOOLS = 1_000;

type Annotated = Map<string, readonly ParamHeader[]>;

/**
 * Header annotations of the tools of legacy backends, from the lists that clients received. Such backends do not read the
 * headers, so the gateway compares them with the arguments. For a list that another process has sent nothing is known, and
 * its calls are accepted.
 */
export class ListedTools {
  readonly #lists = new LRUCache<string, Annotated>({ max: MAX_LISTS });

  /** Reads a page of `tools/list` that is sent to a client. */
  learn(route: string, caller: Caller, { bytes, node, form }: ResultOutcome): void {
    const key = `${route} ${identityOf(caller)}`;
    const tools = getMember(bytes, node, 'tools');
    if (form === 'modern' || tools?.kind !== 'array') {
      this.#lists.delete(key);
      return;
    }
    const list = this.#lists.get(key);
    if (list === undefined && !mentionsAnnotation(bytes, tools)) return;
    const annotated: Annotated = list ?? new Map();
    for (const tool of elementsOf(bytes, tools)) learnTool(annotated, bytes, tool);
    if (annotated.size === 0) this.#lists.delete(key);
    else this.#lists.set(key, annotated);
  }

  /** How the headers of a `tools/call` contradict its arguments; undefined if they do not, or if the tool is not known. */
  problemOf(
    route: string,
    call: HttpCall,
    { method, bytes, params }: RequestFrame,
    name: string | undefined,
  ): string | undefined {
    if (this.#lists.size === 0 || method !== 'tools/call' || name === undefined || params === undefined)
      return undefined;
    const annotated = this.#lists.get(`${route} ${identityOf(call)}`)?.get(name);
    if (annotated === undefined) return undefined;
    return paramHeaderProblem(bytes, getMember(bytes, params, 'arguments'), annotated, call.headers.params);
  }
}

function learnTool(annotated: Annotated, bytes: Buffer, tool: JsonNode): void {
  if (annotated.size === 0 && !mentionsAnnotation(bytes, tool)) return;
  const name = stringOf(bytes, getMember(bytes, tool, 'name'));
  if (name === undefined) return;
  annotated.delete(name);
  const headers = toolTraits(bytes, tool)?.paramHeaders ?? [];
  if (headers.length > 0 && annotated.size < MAX_TOOLS) annotated.set(name, headers);
}
