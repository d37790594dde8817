import type { TransportError } from '../errors.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';

/** Answers as a server would, once whoever sent the request can take it. */
export function synthesizeResponse(sink: ResponseSink, status: number, text: string): UpstreamRequest {
  return later(() => {
    sink.onHead(status, {});
    sink.onEnd(text);
  });
}

export function synthesizeFailure(sink: ResponseSink, error: TransportError): UpstreamRequest {
  return later(() => sink.onError(error));
}

function later(work: () => void): UpstreamRequest {
  let aborted = false;
  queueMicrotask(() => {
    if (!aborted) work();
  });
  return {
    abort: () => {
      aborted = true;
    },
    waitFor() {},
  };
}
