import type { Change } from './change.js';
import type { ChangeFilter } from './change-filter.js';

export interface Subscriber {
  /** Called for each wanted change, also before the backend has agreed. A subscriber that cannot keep up closes itself. */
  onChange(change: Change): void;
  /** The backend notifies of less than it agreed to; {@link Subscription.honoured} is what is left. */
  onNarrowed(): void;
}

/** One subscriber's place in a hub. */
export interface Subscription {
  /** The part of the wanted filter that the backend agreed to. */
  readonly honoured: ChangeFilter;
  /**
   * Replaces the wanted filter.
   * @returns what of it the backend agreed to
   * @throws ExchangeError when the backend cannot be asked; the filter of before then stays
   */
  update(filter: ChangeFilter, options?: UpdateOptions): Promise<ChangeFilter>;
  close(): void;
}

export interface UpdateOptions {
  /**
   * Retries instead of throwing, until the backend can be asked. The subscriber is then notified of a change of all that
   * it wants.
   */
  readonly keepTrying?: boolean;
}
