import type { FastifyInstance, FastifyReply, RouteHandlerMethod } from 'fastify';
import { CODE } from '../exchange/errors.js';
import { errorRope } from '../jsonrpc/index.js';

const READING = ['GET', 'HEAD'];
const ALLOW = [...READING, 'OPTIONS'].join(', ');

/** Something to be read at a path. What would change it is refused as such: the path is there. */
export function serveDocument(fastify: FastifyInstance, url: string, handler: RouteHandlerMethod): void {
  const others = fastify.supportedMethods.filter(
    (method) => !READING.includes(method) && method !== 'OPTIONS',
  );
  fastify.route({ method: READING, url, handler });
  fastify.route({
    method: others,
    url,
    // Before the body is looked at, whose type may be one that is not read here.
    onRequest: (request, reply) => {
      reply.header('allow', ALLOW);
      sendError(reply, 405, CODE.server, `Method Not Allowed: ${request.method}`);
    },
    handler: () => {},
  });
}

/** Answers with an error of JSON-RPC, which all clients of the gateway can read. */
export function sendError(reply: FastifyReply, status: number, code: number, message: string): void {
  reply
    .code(status)
    .header('content-type', 'application/json')
    .send(errorRope(undefined, code, message).toBuffer());
}
