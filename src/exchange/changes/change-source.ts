import type { Change } from './change.js';
import type { ChangeFilter } from './change-filter.js';

/** Notifies a hub of the changes at a backend. All subscribers of the hub share it. */
export interface ChangeSource {
  /**
   * Subscribes at the backend to these changes, and to no others that cost anything; an empty filter releases the
   * backend. Calls never overlap. After a failure the subscriptions of before last, unless
   * {@link ChangeSourceListener.onDown} says otherwise.
   * @returns what the backend agreed to
   * @throws ExchangeError when it cannot be asked
   */
  apply(filter: ChangeFilter): Promise<ChangeFilter>;
  close(): void;
}

/** Observes a source of changes. */
export interface ChangeSourceListener {
  onChange(change: Change): void;
  /** Changes may have been missed; from now on they are notified again. */
  onGap(): void;
  /** Nothing is notified any more, until the filter is applied again. */
  onDown(): void;
}
