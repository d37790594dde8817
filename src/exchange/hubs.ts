import type { Change } from './changes.js';
import { Hub, type Upstream, type UpstreamListener } from './hub.js';

/** The hubs of one outbound side, by whose changes they tell of. */
export class Hubs {
  readonly #hubs = new Map<string, Hub>();
  readonly #observe: (change: Change) => void;

  /** @param observe told of every change that any of the hubs hears of */
  constructor(observe: (change: Change) => void) {
    this.#observe = observe;
  }

  /** @param open makes the upstream of a hub that is not there yet */
  get(key: string, open: (listener: UpstreamListener) => Upstream): Hub {
    let hub = this.#hubs.get(key);
    if (hub === undefined) {
      hub = new Hub(open, this.#observe, () => this.#hubs.delete(key));
      this.#hubs.set(key, hub);
    }
    return hub;
  }

  /** The hub of a key, if somebody listens there. */
  peek(key: string): Hub | undefined {
    return this.#hubs.get(key);
  }

  close(): void {
    for (const hub of [...this.#hubs.values()]) hub.close();
  }
}
