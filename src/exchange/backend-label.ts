/** What a backend is called in messages. */
export interface BackendLabel {
  /** Path of its route: for clients, who may not see where the backend is. */
  readonly route: string;
  /** Its origin, or its program: for the log and the command line. */
  readonly name: string;
}
