export interface Unwanted<T> {
  /** Called when the signal is aborted first. */
  readonly leave?: () => void;
  /** Called with a value that comes after that. */
  readonly late?: (value: T) => void;
}

/**
 * Waits for a promise until a signal is aborted. The work behind the promise goes on, since others may wait for it too.
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
 * Like {@link abortable}, where there may be no signal.
 * @throws the reason of the signal
 */
export async function waitFor<T>(wanted: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return signal === undefined || !(wanted instanceof Promise) ? wanted : abortable(signal, wanted);
}

/**
 * Resolves after `ms` milliseconds.
 * @throws the reason of the signal, if that is aborted first
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
