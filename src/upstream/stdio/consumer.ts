/** Receives messages from a process: a request in flight, or the standalone GET stream of a session. */
export interface Consumer {
  /** Whether earlier messages still wait to be sent on to the client. */
  backlogged: boolean;
}
