import { isFailure } from '../../../exchange/failures.js';
import { type JsonNode, valueOf as readValue } from '../../../jsonrpc/index.js';
import { isAbsence } from '../../../upstream/absent.js';
import type { ProbedServer, ProbeOptions, ProbeResult } from '../../era.js';
import { NEWEST_LEGACY } from '../wire/revisions.js';
import { HandshakeRefused, openSession } from './handshake.js';
import { LegacyBackend } from './legacy-backend.js';
import type { BackendSession } from './session.js';

/** Asks a backend with a handshake whether it speaks this era; the session is ended again. */
export async function probe(options: ProbeOptions): Promise<ProbeResult> {
  const { name, transport, ticker, ownInfo, timeoutMs, forwarded } = options;
  const onFault = (error: unknown): never => {
    throw error;
  };
  const backend = new LegacyBackend({
    route: name,
    name,
    transport,
    ticker,
    handshakeMs: timeoutMs,
    onFault,
  });
  try {
    const session = await openSession(backend, {
      revision: NEWEST_LEGACY,
      capabilities: '{}',
      clientInfo: ownInfo,
      forwarded,
    });
    const server = serverOf(session);
    await session.end(forwarded);
    return { finding: { kind: 'spoken', reason: `answered with ${session.info.revision}` }, server };
  } catch (error) {
    if (error instanceof HandshakeRefused) {
      const { message, reply } = error;
      const absent = isAbsence(reply);
      return { finding: { kind: 'not-spoken', reason: `refused, ${message}`, absent }, server: undefined };
    }
    if (!isFailure(error)) throw error;
    const reason = `failed, ${error.message}`;
    return { finding: { kind: 'inconclusive', reason, slow: false }, server: undefined };
  }
}

function serverOf({ info, id }: BackendSession): ProbedServer {
  const { bytes, result } = info;
  const values = readValue(bytes, result as JsonNode) as Record<string, unknown>;
  return {
    revisions: [info.revision],
    capabilities: values['capabilities'],
    serverInfo: values['serverInfo'],
    session: { id },
  };
}
