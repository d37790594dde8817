/** The result of a probe. Its text is from the server and must not be trusted. */
export interface ProbeReport {
  /** The server that was probed: a URL, or a command with its arguments. */
  readonly url?: string;
  readonly command?: readonly string[];
  /** `unknown` if the server could not be reached or did not respond as an MCP server. */
  readonly era: 'legacy' | 'modern' | 'both' | 'unknown';
  /** The revisions that the server used, newest first. */
  readonly revisions: readonly string[];
  readonly serverInfo?: { readonly name: string; readonly version: string };
  /** The transport that worked; undefined if none did. */
  readonly transport?: 'streamable-http' | 'http-sse' | 'stdio';
  /** The capabilities that the server declares. */
  readonly capabilities?: Readonly<Record<string, unknown>>;
  /** One sentence, such as `gives session ids`. */
  readonly sessions?: string;
  /** One sentence for each request of the probe, with its response and the conclusion. */
  readonly reasons: readonly string[];
}

export interface ProbeServerOptions {
  /** Time limit of each request of the probe, in milliseconds. */
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}
