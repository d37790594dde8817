/** What a server was found to be. Text in it comes from the server and is not to be trusted. */
export interface ProbeReport {
  /** What was probed: a URL, or a command with its arguments. */
  readonly url?: string;
  readonly command?: readonly string[];
  /** `unknown` if the server could not be reached or did not answer as an MCP server of any era. */
  readonly era: 'legacy' | 'modern' | 'both' | 'unknown';
  /** Those that the server was seen to speak, newest first. */
  readonly revisions: readonly string[];
  readonly serverInfo?: { readonly name: string; readonly version: string };
  /** How it was reached; undefined where it was not. */
  readonly transport?: 'streamable-http' | 'http-sse' | 'stdio';
  /** As the server declares them. */
  readonly capabilities?: Readonly<Record<string, unknown>>;
  /** One sentence, such as `gives session ids`. */
  readonly sessions?: string;
  /** What was asked and answered, in order, and what it proves; one sentence each. */
  readonly reasons: readonly string[];
}

export interface ProbeServerOptions {
  /** For each request of the probe. */
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}
