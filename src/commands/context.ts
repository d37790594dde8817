/** What commands use of the process and of the gateway; tests provide their own. */

import type { Config } from '../config/index.js';
import type { Gateway, GatewayOptions } from '../gateway.js';
import type { ProbeReport, ProbeServerOptions } from '../routes/probe-report.js';

export interface CommandContext {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly createGateway: (config: Config, options: GatewayOptions) => Gateway | Promise<Gateway>;
  /** @param target a URL, or a program on stdio with its arguments */
  readonly probeServer: (
    target: string | readonly string[],
    options: ProbeServerOptions,
  ) => Promise<ProbeReport>;
}

/** Exit codes. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

/** The command line is wrong; `message` says what is missing or unknown. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
