import type { FastifyInstance, FastifyReply, RouteHandlerMethod } from 'fastify';
import { errorRope } from '../jsonrpc/index.js';
import { methodNotAllowed, type Refusal } from './errors.js';

const READING = ['GET', 'HEAD'];
const ALLOW = [...READING, 'OPTIONS'].join(', ');

/** Serves a document at a path; other methods than GET and HEAD get 405. */
export function serveDocument(fastify: FastifyInstance, url: string, handler: RouteHandlerMethod): void {
  const others = fastify.supportedMethods.filter(
    (method) => !READING.includes(method) && method !== 'OPTIONS',
  );
  fastify.route({ method: READING, url, handler });
  fastify.route({
    method: others,
    url,
    // Before Fastify looks at the body, whose type it may not read.
    onRequest: (request, reply) => sendError(reply, methodNotAllowed(request.method, ALLOW)),
    handler: () => {},
  });
}

/** Responds with a JSON-RPC error, which every client of the gateway can read. */
export function sendError(reply: FastifyReply, { status, code, message, headers }: Refusal): void {
  if (headers !== undefined) reply.headers(headers);
  const error = errorRope(undefined, code, message);
  reply.request.httpRequest.onRefused(error);
  reply.code(status).header('content-type', 'application/json').send(error.toBuffer());
}
