import type { Caller } from '../caller.js';
import type { ChangeSource, ChangeSourceListener } from './change-source.js';
import { Hub, type HubOptions } from './hub.js';

export type HubsOptions = Pick<HubOptions, 'onChange' | 'onFault'>;

interface KnownHub {
  readonly hub: Hub;
  /** With the latest credentials of its subscribers. */
  caller: Caller;
}

/** The hubs of one backend side: one for all callers with the same rights. */
export class Hubs {
  readonly #hubs = new Map<string, KnownHub>();
  readonly #options: HubsOptions;

  constructor(options: HubsOptions) {
    this.#options = options;
  }

  /**
   * @param key the same for callers that may share a hub
   * @param open makes the source of a new hub; its second argument gives the caller whose credentials to use
   */
  get(
    key: string,
    caller: Caller,
    open: (listener: ChangeSourceListener, caller: () => Caller) => ChangeSource,
  ): Hub {
    const known = this.#hubs.get(key);
    if (known !== undefined) {
      this.#renew(known, caller);
      return known.hub;
    }
    const hub = new Hub({
      open: (listener) => open(listener, () => this.#hubs.get(key)?.caller ?? caller),
      onChange: this.#options.onChange,
      onFault: this.#options.onFault,
      onIdle: () => this.#hubs.delete(key),
    });
    this.#hubs.set(key, { hub, caller });
    return hub;
  }

  /** The hub of a key, if there is one. */
  peek(key: string): Hub | undefined {
    return this.#hubs.get(key)?.hub;
  }

  /** Takes the credentials of a caller: what the older ones were refused may be granted to them. */
  touch(key: string, caller: Caller): void {
    const known = this.#hubs.get(key);
    if (known !== undefined) this.#renew(known, caller);
  }

  close(): void {
    for (const { hub } of [...this.#hubs.values()]) hub.close();
  }

  #renew(known: KnownHub, caller: Caller): void {
    const renewed = known.caller.forwarded.authorization !== caller.forwarded.authorization;
    known.caller = caller;
    if (renewed) known.hub.retryNow();
  }
}
