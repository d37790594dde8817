import type { NotificationFrame, RequestFrame } from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';

/** Receives what arrives on a session outside the response stream of a call. */
export interface SessionListener {
  /** @returns how to wait for a slow reader */
  onNotification(frame: NotificationFrame): Backpressure | undefined;
  onRequest(frame: RequestFrame): void;
}

/** Observes a session. */
export interface SessionObserver {
  /** A change notification came, outside any call. */
  onChange(frame: NotificationFrame): void;
  /** The standalone GET stream broke and is open again; what was sent meanwhile is lost. */
  onGap(): void;
  /** Nothing can arrive outside a call any more: the backend has no standalone GET stream, or refuses it. */
  onUnavailable(): void;
  /** The backend does not know the session any more. */
  onLost(): void;
}
