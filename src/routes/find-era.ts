import type { Era, ProbeOptions, ProbeResult } from '../eras/index.js';
import { Rope, requestRope } from '../jsonrpc/index.js';
import { RpcCall, SILENT } from '../upstream/rpc-call.js';
import type { Transport } from '../upstream/transport.js';

export interface FindEraOptions extends ProbeOptions {
  /** Longest time until a server that is started for the probe answers anything at all. */
  readonly startMs: number;
}

/** How long after a later request an earlier one may still be answered. */
const GRACE_MS = 250;

/**
 * Probes a backend for an era. One on standard streams is probed in a process of its own: servers of the legacy era
 * exit, fall silent or are confused by requests of another era (basic/transports/stdio, "Backward Compatibility"), so
 * anything but a proper answer means that they do not speak it.
 * @param other the era that the backend speaks if it does not speak this one
 */
export async function findEra(era: Era, other: Era, options: FindEraOptions): Promise<ProbeResult> {
  const transport = options.transport.probeTransport?.();
  if (transport === undefined) return await era.probe(options);
  try {
    const { timeoutMs, startMs } = options;
    const probed = era.probe({ ...options, transport, timeoutMs: Math.max(timeoutMs, startMs) });
    const unanswered = answersOnly(other, era, transport, options);
    const { finding, server } = await Promise.race([probed, unanswered]);
    const reason = finding.reason.replace(' HTTP 200,', '');
    if (finding.kind !== 'inconclusive') return { finding: { ...finding, reason }, server };
    return { finding: { kind: 'not-spoken', reason, absent: !finding.slow }, server };
  } finally {
    // The process may take seconds to exit, which nothing has to wait for; closing never rejects.
    void transport.close();
  }
}

/**
 * Resolves once a server that is silent to the probe has answered the first request of another era: it is not starting
 * any more, but does not know what the probe asks.
 */
async function answersOnly(
  other: Era,
  era: Era,
  transport: Transport,
  { timeoutMs, ticker, ownInfo }: FindEraOptions,
): Promise<ProbeResult> {
  await pause(timeoutMs);
  const { method, params } = other.firstRequest(ownInfo);
  const rpc = new RpcCall('1', ticker, SILENT);
  const body = requestRope(1, method, new Rope().push(params));
  rpc.post({ transport, headers: [], body, repeatable: false });
  const reply = await rpc.reply;
  if (reply.kind !== 'response') return new Promise(() => {});
  await pause(GRACE_MS);
  const reason = `no answer to ${era.firstRequest(ownInfo).method}`;
  return { finding: { kind: 'not-spoken', reason }, server: undefined };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
