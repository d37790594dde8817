export interface Unwanted<T> {
  /** Called when the signal is aborted first. */
  readonly leave?: () => void;
  /** Called with a value that comes all the same. */
  readonly late?: (value: T) => void;
}

/**
 * Waits for a promise, but no longer than until a signal is aborted. What the promise stands for goes on: others may
 * wait for it too.
 * @throws the reason of the signal
 */
export function abortable<T>(
  signal: AbortSignal,
  wanted: Promise<T>,
  { leave, late }: Unwanted<T> = {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      leave?.();
      reject(signal.reason);
    };
    const settle = (): boolean => {
      signal.removeEventListener('abort', abort);
      return !signal.aborted;
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    wanted.then(
      (value) => {
        if (settle()) resolve(value);
        else late?.(value);
      },
      (error) => {
        if (settle()) reject(error);
      },
    );
  });
}

/**
 * Waits for a promise; no longer than until the signal is aborted, where there is one.
 * @throws the reason of the signal
 */
export async function waitFor<T>(wanted: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return signal === undefined || !(wanted instanceof Promise) ? wanted : abortable(signal, wanted);
}

/**
 * Resolves after a while.
 * @throws the reason of the signal, when that is aborted first
 */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, ms);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
