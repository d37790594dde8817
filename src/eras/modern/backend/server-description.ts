import { LRUCache } from 'lru-cache';
import type { BackendLabel } from '../../../exchange/backend-label.js';
import { type Caller, identityOf } from '../../../exchange/caller.js';
import { readCapabilities } from '../../../exchange/client-capabilities.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import type { ServerDescription } from '../../../exchange/outbound.js';
import { statedCapabilities } from '../../../exchange/server-capabilities.js';
import { declaresTasks } from '../../../exchange/tasks.js';
import { CircuitBreakers } from '../../../exchange/utils/circuit-breaker.js';
import { keyText } from '../../../exchange/utils/hash.js';
import { getMember, type ResultFrame, textOf } from '../../../jsonrpc/index.js';
import { META } from '../wire/names.js';
import type { ToolMap } from '../wire/tool-traits.js';
import { failureOf } from './refusals.js';
import type { ModernRequests } from './requests.js';
import { validTtl } from './results.js';
import { ToolIndex } from './tool-index.js';

const MAX_CALLERS = 500;
/** How long it is known whether the backend makes tasks, in milliseconds. */
const MAKES_TASKS_TTL_MS = 60_000;
const NO_TOOLS: ToolMap = new Map();

/** Equal for callers to whom a backend describes itself equally: it may depend on the credential, the headers and the capabilities. */
export function callerKey(caller: Caller): string {
  return `${identityOf(caller)} ${caller.capabilities.key}`;
}

/** Equal for callers whose requests a backend cannot tell apart. */
function breakerKey(caller: Caller): string {
  return `${callerKey(caller)} ${keyText(caller.clientInfo ?? '')}`;
}

/** A modern backend's descriptions of itself and of its tools, by caller. */
export class ServerDescriptions {
  readonly #backend: BackendLabel;
  readonly #requests: ModernRequests;
  readonly #discoverMs: number;
  readonly #breakers: CircuitBreakers;
  readonly #tools = new ToolIndex();
  /** Whether the backend makes tasks of calls, by caller. */
  readonly #makesTasks = new LRUCache<string, boolean>({ max: MAX_CALLERS, ttl: MAKES_TASKS_TTL_MS });

  /**
   * @param backend for messages
   * @param discoverMs longest time for a response to a request of the gateway's own
   */
  constructor(backend: BackendLabel, requests: ModernRequests, discoverMs: number) {
    this.#backend = backend;
    this.#requests = requests;
    this.#discoverMs = discoverMs;
    this.#breakers = new CircuitBreakers(discoverMs);
  }

  /** @throws ExchangeError or WrongEra if the backend does not describe itself */
  async describe(caller: Caller): Promise<ServerDescription> {
    const { bytes, result } = await this.#breakers.wait(breakerKey(caller), () => this.#discover(caller));
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
    const reply = await this.#requests.request(caller, 'server/discover', undefined, {
      limitMs: this.#discoverMs,
    });
    if (reply.kind !== 'response' || reply.frame.type === 'error') throw failureOf(this.#backend, reply);
    return reply.frame;
  }

  /** Whether the backend makes tasks of calls; false if that cannot be found out, so that no call fails for it. */
  async makesTasks(caller: Caller): Promise<boolean> {
    const key = callerKey(caller);
    const known = this.#makesTasks.get(key);
    if (known !== undefined) return known;
    await this.describe(caller).catch(ignoreFailure);
    return this.#makesTasks.get(key) ?? false;
  }

  /** The caller's tools; none if they cannot be listed, since most calls need nothing of the list. */
  toolsOf(caller: Caller): Promise<ToolMap> {
    const tools = this.#tools.get(callerKey(caller), async (cursor) => {
      const params = cursor === undefined ? undefined : { cursor };
      const reply = await this.#requests.request(caller, 'tools/list', params, { limitMs: this.#discoverMs });
      if (reply.kind !== 'response') throw failureOf(this.#backend, reply);
      return reply.frame.type === 'result' ? reply.frame : undefined;
    });
    return tools.catch((error) => ignoreFailure(error) ?? NO_TOOLS);
  }

  /** Makes the next call read the caller's tools again. */
  forgetToolsOf(caller: Caller): void {
    this.#tools.forget(callerKey(caller));
  }

  /** Makes the next call of every caller read the tools again. */
  forgetTools(): void {
    this.#tools.clear();
  }
}
