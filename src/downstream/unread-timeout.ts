import type { ServerResponse } from 'node:http';

/** Longer than a page or a laptop sleeps between two looks at its streams, as long as anyone is there at all. */
const UNREAD_MS = 300_000;

/**
 * Cuts off a client that reads nothing for a long time of what is written for it: the bytes, and the backend that is
 * held up on account of it, would stay for as long as its connection does. Nothing happens where all is read by now.
 */
export function cutOffUnread(res: ServerResponse, limitMs = UNREAD_MS): void {
  if (res.writableLength === 0) return;
  const cut = (): void => {
    res.destroy();
  };
  // The timeout of a socket counts what the system has taken of a write, however large that is.
  res.setTimeout(limitMs).on('timeout', cut);
  res.once('drain', () => {
    res.off('timeout', cut).setTimeout(0);
  });
}
