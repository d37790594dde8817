/** What the commands need from the process and from the gateway, so that they can be run without either. */

import type { Config } from '../config/index.js';
import type { Gateway, GatewayOptions } from '../gateway.js';
import type { ProbeReport, ProbeServerOptions } from '../routes/probe-report.js';

export interface CommandContext {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly createGateway: (config: Config, options: GatewayOptions) => Gateway | Promise<Gateway>;
  /** @param target a URL, or a program with its arguments to start and to speak to on its standard streams */
  readonly probeServer: (
    target: string | readonly string[],
    options: ProbeServerOptions,
  ) => Promise<ProbeReport>;
}

/** What a command ends with. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

/** Thrown by a command that was called the wrong way; `message` says what is missing or not understood. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
