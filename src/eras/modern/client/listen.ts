import type { ChangeFilter } from '../../../exchange/changes/change-filter.js';
import { CODE } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import { type Outcome, ownError } from '../../../exchange/outcome.js';
import { tasksUndeclared } from '../../../exchange/tasks.js';
import { getMember, type RequestFrame } from '../../../jsonrpc/index.js';
import { readFilter } from '../wire/change-filter.js';
import type { ModernRequest } from './request.js';
import { SubscriptionStream } from './subscription-stream.js';

/** Limit of the resources in one filter. */
const MAX_RESOURCES = 1_000;

/**
 * Carries out `subscriptions/listen` until the subscription ends. A modern backend keeps the subscription itself; for
 * another one the gateway does.
 */
export async function listen({ route, call, frame }: ModernRequest, exchange: Exchange): Promise<Outcome> {
  const filter = requestedFilter(frame);
  if (typeof filter === 'string') return ownError({ code: CODE.invalidParams, message: filter, status: 400 });
  if (!call.response.acceptsEvents) {
    const message = 'Not Acceptable: the client must accept text/event-stream';
    return ownError({ code: CODE.server, message, status: 406 });
  }
  const era = await route.eraFor(exchange.caller, exchange.signal).catch(ignoreFailure);
  if (era === 'modern') return route.run(exchange);
  // The tasks extension requires the error, even though no notification of a task could come from a legacy backend.
  if (subscribesToTasks(frame) && exchange.taskKeeper === undefined) return tasksUndeclared();
  const stream = new SubscriptionStream(exchange, call.response, filter);
  return route.follow(exchange, filter, stream, (honoured) => stream.acknowledge(honoured));
}

/** @returns the filter of the request, or what is wrong with it */
function requestedFilter({ bytes, params }: RequestFrame): ChangeFilter | string {
  const node = params === undefined ? undefined : getMember(bytes, params, 'notifications');
  const filter = readFilter(bytes, node);
  return typeof filter === 'string' || filter.resources.size <= MAX_RESOURCES
    ? filter
    : `params.notifications.resourceSubscriptions must not hold more than ${MAX_RESOURCES}`;
}

function subscribesToTasks({ bytes, params }: RequestFrame): boolean {
  const node = params === undefined ? undefined : getMember(bytes, params, 'notifications');
  return node?.kind === 'object' && getMember(bytes, node, 'taskIds') !== undefined;
}
