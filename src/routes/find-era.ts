import { NEWEST_LEGACY } from '../eras/legacy/wire/revisions.js';
import { type ProbeAnswer, type ProbeOptions, probe } from '../eras/modern/backend/probe.js';
import { Rope, requestRope } from '../jsonrpc/index.js';
import { RpcCall, SILENT } from '../upstream/rpc-call.js';
import type { Transport } from '../upstream/transport.js';

export interface FindEraOptions extends ProbeOptions {
  /** How long a server that is started for the purpose may take to answer anything at all. */
  readonly startMs: number;
}

/** How long after a later request an earlier one may still be answered. */
const GRACE_MS = 250;

/**
 * Asks a backend for its era. One on standard streams is asked on a process of its own: servers of the legacy era exit,
 * fall silent or are confused when they are asked for the other one (basic/transports/stdio, "Backward
 * Compatibility"), and whatever they do but to answer as a modern one means that they are of the legacy era.
 */
export async function findEra(options: FindEraOptions): Promise<ProbeAnswer> {
  const transport = options.transport.probeTransport?.();
  if (transport === undefined) return await probe(options);
  try {
    const { timeoutMs, startMs } = options;
    const asked = probe({ ...options, transport, timeoutMs: Math.max(timeoutMs, startMs) });
    const { finding, reply } = await Promise.race([asked, silent(options, transport)]);
    const kind = finding.kind === 'inconclusive' ? 'not-modern' : finding.kind;
    return { finding: { kind, reason: finding.reason.replace(' HTTP 200,', '') }, reply };
  } finally {
    void transport.close();
  }
}

/**
 * Resolves once a server that says nothing to the probe has answered something else: it is not starting any more, but
 * does not know what it is asked.
 */
async function silent(options: FindEraOptions, transport: Transport): Promise<ProbeAnswer> {
  const { timeoutMs, ticker, ownInfo } = options;
  await pause(timeoutMs);
  const params = `{"protocolVersion":"${NEWEST_LEGACY}","capabilities":{},"clientInfo":${ownInfo}}`;
  const rpc = new RpcCall('0', ticker, SILENT);
  rpc.post({
    transport,
    headers: [],
    body: requestRope(0, 'initialize', new Rope().push(params)),
    repeatable: false,
  });
  const reply = await rpc.reply;
  if (reply.kind !== 'answer') return new Promise(() => {});
  await pause(GRACE_MS);
  return { finding: { kind: 'not-modern', reason: 'no answer to server/discover' }, reply };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
