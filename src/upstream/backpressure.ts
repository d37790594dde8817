/**
 * Returned for a message whose consumer buffers more than it should. The reader of the stream pauses, and passes the
 * function that resumes reading; it is called once the consumer has drained or is gone.
 */
export type Backpressure = (resume: () => void) => void;
