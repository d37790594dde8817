import type { TransportError } from './errors.js';
import type { ResponseSink, UpstreamRequest } from './transport.js';

/** Sends a sink a response of the gateway's own, after the caller has got the request. */
export function synthesizeResponse(sink: ResponseSink, status: number, text: string): UpstreamRequest {
  return synthesize(() => {
    sink.onHead(status, {});
    sink.onEnd(text);
  });
}

/** Sends a sink an error of the gateway's own, after the caller has got the request. */
export function synthesizeFailure(sink: ResponseSink, error: TransportError): UpstreamRequest {
  return synthesize(() => sink.onError(error));
}

function synthesize(respond: () => void): UpstreamRequest {
  let aborted = false;
  queueMicrotask(() => {
    if (!aborted) respond();
  });
  return {
    abort: () => {
      aborted = true;
    },
    waitFor() {},
  };
}
