/** Times of the backend side in milliseconds, for what no configuration sets. */
export interface TimeLimits {
  /** For the backend to accept a notification or a response. */
  readonly messageMs: number;
  /** For the backend to end a session. */
  readonly endSessionMs: number;
  /** For the head of the standalone GET stream: some proxies delay it until the first event. */
  readonly getStreamHeadMs: number;
  /** How long the stream of a client that does not listen stays open after a call: the next call is often near. */
  readonly keepGetStreamMs: number;
  /** How long after a call a change on its session is attributed to the call. */
  readonly afterCallMs: number;
  /** How long a limitation of a backend is remembered: it may be replaced by one without it. */
  readonly limitationMs: number;
  /** How long a list that the server notifies changes of is kept: some servers miss a change. */
  readonly watchedListMs: number;
  /** Pause before a response stream is resumed, if the server sets none. */
  readonly resumePauseMs: number;
  /** How long the server's list of tools that run as tasks is kept. */
  readonly taskSupportMs: number;
  /** For the server to answer `tasks/get` or `tasks/cancel`. */
  readonly taskRequestMs: number;
  /** For the result of a finished task, while a client waits for the state of the task. */
  readonly taskResultMs: number;
  /** For the server to accept that a task is cancelled that no client follows any longer. */
  readonly endTaskMs: number;
  /** Pause between two `tasks/get` of a task, if the server sets none. */
  readonly taskPollMs: number;
}

export const TIME_LIMITS: TimeLimits = {
  messageMs: 10_000,
  endSessionMs: 3_000,
  getStreamHeadMs: 1_000,
  keepGetStreamMs: 5_000,
  afterCallMs: 2_000,
  limitationMs: 600_000,
  watchedListMs: 60_000,
  resumePauseMs: 1_000,
  taskSupportMs: 60_000,
  taskRequestMs: 30_000,
  taskResultMs: 2_000,
  endTaskMs: 2_000,
  taskPollMs: 1_000,
};
