import type { TransportError } from '../errors.js';
import type { AnswerSink, Transmission } from '../transport.js';

/** Answers as a server would, once whoever sent the request can take it. */
export function answerLater(sink: AnswerSink, status: number, text: string): Transmission {
  return later(() => {
    sink.onHead(status, {});
    sink.onEnd(text);
  });
}

export function failLater(sink: AnswerSink, error: TransportError): Transmission {
  return later(() => sink.onError(error));
}

function later(work: () => void): Transmission {
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
