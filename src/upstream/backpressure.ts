/**
 * Given back for a message whose reader lags behind what is written to it: calls `resume` once the reader has caught
 * up, or is gone. Whoever took the message off a stream stops reading it until then.
 */
export type Backpressure = (resume: () => void) => void;
