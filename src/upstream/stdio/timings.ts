import { type BackoffOptions, RECONNECT } from '../../exchange/utils/backoff.js';

/** Time limits for processes, in milliseconds. */
export interface StdioTimings {
  /** From the end of standard input to SIGTERM (basic/transports/stdio, "Shutdown"). */
  readonly inputEndMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly terminateMs: number;
  /** Longest wait for the system to end a process after SIGKILL. */
  readonly killMs: number;
  /** How long output is still read after a process has exited or has closed one of its streams. */
  readonly lastOutputMs: number;
  /** Longest wait for the answer to a ping; less where calls have less. */
  readonly pingMs: number;
  /** A process that has worked for longer did not exit because of its first requests. */
  readonly steadyMs: number;
  /** Pauses between attempts to start a process that exits before it has answered a request. */
  readonly restart: BackoffOptions;
}

export const STDIO_TIMINGS: StdioTimings = {
  inputEndMs: 1_000,
  terminateMs: 1_000,
  killMs: 1_000,
  lastOutputMs: 250,
  pingMs: 5_000,
  steadyMs: 1_000,
  restart: RECONNECT,
};
