import { cancelled } from './errors.js';
import type { Exchange } from './exchange.js';

export interface Unwanted<T> {
  /** Called when the exchange is over first. */
  readonly leave?: () => void;
  /** Takes what comes nevertheless. */
  readonly late?: (value: T) => void;
}

/**
 * Waits for something on behalf of an exchange, but no longer than the exchange lasts.
 * @throws ExchangeError when the exchange is cancelled first
 */
export function abortable<T>(exchange: Exchange, wanted: Promise<T>, unwanted: Unwanted<T> = {}): Promise<T> {
  return new Promise((resolve, reject) => {
    let gone = false;
    exchange.onCancel((reason) => {
      gone = true;
      unwanted.leave?.();
      reject(cancelled(reason));
    });
    wanted.then(
      (value) => {
        if (gone) unwanted.late?.(value);
        else {
          exchange.onCancel(undefined);
          resolve(value);
        }
      },
      (error) => {
        if (gone) return;
        exchange.onCancel(undefined);
        reject(error);
      },
    );
  });
}
