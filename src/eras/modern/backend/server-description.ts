import { LRUCache } from 'lru-cache';
import { CircuitBreaker } from '../../../exchange/circuit-breaker.js';
import { readCapabilities } from '../../../exchange/digest.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import type { ServerDescription } from '../../../exchange/outbound.js';
import { statedCapabilities } from '../../../exchange/server-capabilities.js';
import { declaresTasks } from '../../../exchange/tasks.js';
import type { Caller } from '../../../exchange/types.js';
import { getMember, type ResultFrame, textOf } from '../../../jsonrpc/index.js';
import { META } from '../wire/names.js';
import type { ToolMap } from '../wire/tool-traits.js';
import { failureOf } from './refusals.js';
import type { ModernRequests } from './requests.js';
import { validTtl } from './results.js';
import { ToolIndex } from './tool-index.js';

const REMEMBERED = 500;
const TASKS_KNOWN_MS = 60_000;
const NO_TOOLS: ToolMap = new Map();

/** Callers for whom a backend is the same: what it says may depend on who asks, and on what the asker can do. */
export function callerKey(caller: Caller): string {
  return `${caller.principal} ${caller.capabilities.key}`;
}

/** What a modern backend says of itself, to each of its callers. */
export class ServerDescriptions {
  readonly #name: string;
  readonly #requests: ModernRequests;
  readonly #discoverMs: number;
  readonly #breaker: CircuitBreaker;
  readonly #tools = new ToolIndex();
  /** Which callers the backend makes tasks for. */
  readonly #makesTasks = new LRUCache<string, boolean>({ max: REMEMBERED, ttl: TASKS_KNOWN_MS });

  /**
   * @param name of the backend, for messages to people
   * @param discoverMs longest time for an answer to a request of the gateway's own
   */
  constructor(name: string, requests: ModernRequests, discoverMs: number) {
    this.#name = name;
    this.#requests = requests;
    this.#discoverMs = discoverMs;
    this.#breaker = new CircuitBreaker(discoverMs);
  }

  /** @throws ExchangeError, WrongEra where the backend does not say */
  async describe(caller: Caller): Promise<ServerDescription> {
    const { bytes, result } = await this.#breaker.wait(() => this.#discover(caller));
    const capabilities = statedCapabilities(bytes, getMember(bytes, result, 'capabilities'));
    this.#makesTasks.set(callerKey(caller), declaresTasks(readCapabilities(capabilities)));
    const instructions = getMember(bytes, result, 'instructions');
    const meta = getMember(bytes, result, '_meta');
    const serverInfo = meta === undefined ? undefined : getMember(bytes, meta, META.serverInfo);
    return {
      era: 'modern',
      capabilities,
      serverInfo: serverInfo?.kind === 'object' ? textOf(bytes, serverInfo) : undefined,
      instructions: instructions?.kind === 'string' ? textOf(bytes, instructions) : undefined,
      ttlMs: validTtl(bytes, getMember(bytes, result, 'ttlMs')),
      sessions: false,
      result: bytes.subarray(result.start, result.end),
    };
  }

  async #discover(caller: Caller): Promise<ResultFrame> {
    const reply = await this.#requests.request(caller, 'server/discover', undefined, this.#discoverMs);
    if (reply.kind !== 'answer' || reply.frame.type === 'error') throw failureOf(this.#name, reply);
    return reply.frame;
  }

  /** Whether the backend makes tasks of calls. A call does not fail for want of that knowledge. */
  async makesTasks(caller: Caller): Promise<boolean> {
    const key = callerKey(caller);
    const known = this.#makesTasks.get(key);
    if (known !== undefined) return known;
    await this.describe(caller).catch(ignoreFailure);
    return this.#makesTasks.get(key) ?? false;
  }

  /** The caller's tools. A call does not fail for want of the list: it may need nothing that the list tells. */
  toolsOf(caller: Caller): Promise<ToolMap> {
    const tools = this.#tools.get(callerKey(caller), async (cursor) => {
      const params = cursor === undefined ? undefined : { cursor };
      const reply = await this.#requests.request(caller, 'tools/list', params, this.#discoverMs);
      if (reply.kind !== 'answer') throw failureOf(this.#name, reply);
      return reply.frame.type === 'result' ? reply.frame : undefined;
    });
    return tools.catch((error) => ignoreFailure(error) ?? NO_TOOLS);
  }

  /** A caller's tools are not what they were when they were asked for. */
  forgetToolsOf(caller: Caller): void {
    this.#tools.forget(callerKey(caller));
  }

  /** The tools have changed. */
  forgetTools(): void {
    this.#tools.clear();
  }
}
