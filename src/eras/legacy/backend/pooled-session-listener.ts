import { isChange } from '../../../exchange/changes/change.js';
import type { ClientAnswer } from '../../../exchange/channel.js';
import { CODE } from '../../../exchange/errors.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { PROGRESS, progressTokenOf } from '../../../exchange/progress.js';
import type { NotificationFrame, RequestFrame } from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import type { BackendSession } from './session.js';
import type { SessionListener } from './session-events.js';

const EMPTY_RESULT = Buffer.from('{}');
const LOG = 'notifications/message';

export interface PooledSessionListenerOptions {
  /** Headers for responses to requests that belong to no call. */
  readonly forwarded: ForwardedHeaders;
  /** The answer to `roots/list` if no client can be asked; undefined if roots are not declared. */
  readonly roots: (() => ClientAnswer) | undefined;
  readonly onChange: (frame: NotificationFrame) => void;
}

/** Receives what arrives on the standalone GET stream of a pooled session. */
export class PooledSessionListener implements SessionListener {
  readonly #session: BackendSession;
  readonly #options: PooledSessionListenerOptions;

  constructor(session: BackendSession, options: PooledSessionListenerOptions) {
    this.#session = session;
    this.#options = options;
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    if (frame.method === PROGRESS) return this.#session.callOf(progressTokenOf(frame))?.onNotification(frame);
    if (isChange(frame.method)) {
      this.#options.onChange(frame);
      return undefined;
    }
    const { exclusiveCall, onlyCall } = this.#session;
    const call = frame.method === LOG ? (exclusiveCall ?? onlyCall) : exclusiveCall;
    return call?.onNotification(frame);
  }

  onRequest(frame: RequestFrame): void {
    const { exclusiveCall } = this.#session;
    const { forwarded, roots } = this.#options;
    if (exclusiveCall !== undefined) exclusiveCall.onRequest(frame);
    else if (frame.method === 'ping') this.#session.answer(frame.id, { result: EMPTY_RESULT }, forwarded);
    else if (frame.method === 'roots/list' && roots !== undefined)
      this.#session.answer(frame.id, roots(), forwarded);
    else {
      const message = 'no client request is there to attach this to';
      this.#session.refuse(frame.id, message, forwarded, CODE.internal);
    }
  }
}
