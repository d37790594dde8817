import type { HttpCall } from '../../../downstream/http-call.js';
import { CODE, ExchangeError } from '../../../exchange/errors.js';
import type { RouteService } from '../../../exchange/route-service.js';
import { type Batch, errorRope, FrameError, type RequestId, type Rope } from '../../../jsonrpc/index.js';
import { type OneWay, takeOneWay } from './one-way.js';
import type { Reply } from './outcome.js';
import { carryOut } from './requests.js';
import type { LegacyClientSession } from './session.js';

const MAX_BATCH = 100;

/** Carries out a JSON-RPC batch, which only 2025-03-26 has (basic/index, "Batching"). */
export async function carryOutBatch(
  route: RouteService,
  call: HttpCall,
  session: LegacyClientSession,
  batch: Batch,
): Promise<void> {
  const { response } = call;
  const problem = batchProblem(session, batch);
  if (problem !== undefined) {
    response.end(400, invalid(undefined, problem));
    return;
  }
  const responses: Rope[] = [];
  const reply: Reply = (_status, message) => {
    // On an event stream each response is sent at once.
    if (response.streaming) response.writeEvent(message);
    else responses.push(message);
  };
  await Promise.all(
    batch.items.map((item) => {
      if (item instanceof FrameError) reply(400, errorRope(item.id, item.code, item.message));
      else if (item.type !== 'request') takeOneWayOfBatch(session, call, item);
      else if (item.method === 'initialize')
        reply(200, invalid(item.id, 'initialize must not be part of a batch'));
      else return carryOut(route, call, session, item, reply);
      return undefined;
    }),
  );
  if (responses.length === 0) response.endEmpty(202);
  else response.endBatch(responses);
}

/** Drops a notification that is refused: a batch has no response for it. */
function takeOneWayOfBatch(session: LegacyClientSession, call: HttpCall, frame: OneWay): void {
  try {
    takeOneWay(session, call, frame);
  } catch (error) {
    if (!(error instanceof ExchangeError)) throw error;
  }
}

function batchProblem({ claims, features }: LegacyClientSession, { items }: Batch): string | undefined {
  if (!features.batches) return `no batches in ${claims.revision}`;
  return items.length > MAX_BATCH ? `more than ${MAX_BATCH} messages in a batch` : undefined;
}

function invalid(id: RequestId | undefined, message: string): Rope {
  return errorRope(id, CODE.invalidRequest, `Invalid Request: ${message}`);
}
