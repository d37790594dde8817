import { type Change, changeOf, isChange } from '../../../exchange/changes/change.js';
import { cancelled } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { serverMessageFor } from '../../../exchange/progress.js';
import { isRepeatable } from '../../../exchange/repeatable-methods.js';
import type { NotificationFrame, RequestFrame, Rope } from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import { RpcCall, type RpcListener, type RpcReply } from '../../../upstream/rpc-call.js';
import type { ModernBackend } from './modern-backend.js';

/** A request as it is sent to the backend. */
export interface OutgoingRequest {
  /** JSON text of the id in the body. */
  readonly id: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly body: Rope;
}

/** Sends one request for an exchange and returns the reply; notifications go to the client meanwhile. */
export async function sendRequest(
  exchange: Exchange,
  backend: ModernBackend,
  { id, headers, body }: OutgoingRequest,
): Promise<RpcReply> {
  if (exchange.cancelled !== undefined) throw cancelled(exchange.cancelled);
  const startedAt = performance.now();
  const rpc = new RpcCall(id, backend.ticker, new CallListener(exchange, backend.onChange));
  const observing = exchange.attach({ onCancelled: (reason) => rpc.abort(reason) });
  const reply = await rpc.post({
    transport: backend.transport,
    headers,
    body,
    repeatable: isRepeatable(exchange.request.method),
  }).reply;
  observing[Symbol.dispose]();
  exchange.notes.backendMs = performance.now() - startedAt;
  if (exchange.cancelled !== undefined) throw cancelled(exchange.cancelled);
  return reply;
}

/** Receives what comes on the response stream of a call. */
class CallListener implements RpcListener {
  readonly #exchange: Exchange;
  readonly #onChange: (change: Change) => void;

  constructor(exchange: Exchange, onChange: (change: Change) => void) {
    this.#onChange = onChange;
    this.#exchange = exchange;
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    if (isChange(frame.method)) this.#onChange(changeOf(frame));
    const exchange = this.#exchange;
    const message = serverMessageFor(exchange, frame, exchange.request.progressToken);
    if (message === undefined || exchange.notify(message)) return undefined;
    return (resume) => exchange.onDrain(resume);
  }

  /** The revision forbids requests on this stream (basic/transports, "Receiving Messages"). */
  onRequest(_frame: RequestFrame): void {}
}
