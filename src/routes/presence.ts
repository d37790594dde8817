import type { Era, ProbeFinding, ProbeOptions } from '../eras/index.js';

export interface PresenceOptions extends ProbeOptions {
  /** Longest time until a server that is started for the probe answers anything at all. */
  readonly startMs: number;
}

/**
 * Tells a backend of another era from one that is not there: a path that answers 404 to all, or a program that exits
 * whatever it is asked. Only what the first era's probe left in doubt is asked again, with the other era's first request.
 * @param other the era that the backend speaks if it is there
 */
export async function confirmPresence(
  finding: ProbeFinding,
  other: Era,
  options: PresenceOptions,
): Promise<ProbeFinding> {
  if (finding.kind !== 'not-spoken' || finding.absent !== true) return finding;
  const transport = options.transport.probeTransport?.();
  try {
    const answer = await other.probe({
      ...options,
      transport: transport ?? options.transport,
      timeoutMs: transport === undefined ? options.timeoutMs : Math.max(options.timeoutMs, options.startMs),
    });
    return isAbsent(answer.finding, transport !== undefined)
      ? {
          kind: 'unreachable',
          reason: reasonOf(finding.reason, answer.finding.reason, transport !== undefined),
        }
      : finding;
  } finally {
    // The process may take seconds to exit, which nothing has to wait for; closing never rejects.
    void transport?.close();
  }
}

function isAbsent(finding: ProbeFinding, started: boolean): boolean {
  if (finding.kind === 'not-spoken') return finding.absent === true;
  // A program that cannot be asked is gone; over HTTP it may be busy.
  return finding.kind === 'unreachable' || (started && finding.kind === 'inconclusive' && !finding.slow);
}

function reasonOf(first: string, second: string, started: boolean): string {
  return started
    ? `${second.replace(/^failed, /, '')} (check backend.command and backend.args)`
    : `${first}, and initialize too: nothing is at this path (check the path of backend.url)`;
}
