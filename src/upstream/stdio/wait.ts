const POLL_MS = 25;

/** Polls a condition until it holds, for `limitMs` at most. */
export async function until(limitMs: number, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!holds() && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Waits for an event. Resolves with false if it has not happened within `limitMs`. */
export async function within(limitMs: number, event: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  return Promise.race([event.then(() => true), timeout]).finally(() => clearTimeout(timer));
}
