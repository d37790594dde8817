/** What the commands need from the process and from the gateway, so that they can be run without either. */

import type { Logger } from 'pino';
import type { Config } from '../config/index.js';

export interface Gateway {
  /** Resolves to the URL that it listens on. */
  listen(): Promise<string>;
  /** Stops accepting, finishes what is in flight within a bound, and frees everything. */
  close(): Promise<void>;
}

export interface ProbeOptions {
  /** For each request of the probe. */
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

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

export interface CommandContext {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly createGateway: (
    config: Config,
    options: { log: Logger; exchanges: Logger },
  ) => Gateway | Promise<Gateway>;
  /** @param target a URL, or a program with its arguments to start and to speak to on its standard streams */
  readonly probeServer: (target: string | readonly string[], options: ProbeOptions) => Promise<ProbeReport>;
}

/** What a command ends with. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

/** Thrown by a command that was called the wrong way; `message` says what is missing or not understood. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
