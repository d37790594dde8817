import type { ServerResponse } from 'node:http';

/** Longer than a browser page or a laptop that is still in use sleeps between two reads. */
const UNREAD_MS = 300_000;

const watched = new WeakSet<ServerResponse>();

/**
 * Closes the connection if its client reads nothing for `limitMs` of what is written: the bytes, and the backend that
 * waits for them to be read, would be held for as long as the connection lasts. Does nothing where all has been read.
 */
export function closeUnread(res: ServerResponse, limitMs = UNREAD_MS): void {
  if (res.writableLength === 0 || watched.has(res)) return;
  watched.add(res);
  const close = (): void => {
    res.destroy();
  };
  // The timeout of a socket restarts with each part of a write that the system takes.
  res.setTimeout(limitMs).on('timeout', close);
  // The connection tells of pieces that were written corked, of which the response keeps no account.
  const { socket } = res;
  const drained = (): void => {
    watched.delete(res);
    socket?.off('drain', drained);
    res.off('drain', drained).off('timeout', close).setTimeout(0);
  };
  res.on('drain', drained);
  socket?.on('drain', drained);
}
