import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { ResourceMetadata } from '../authorization/resource-metadata.js';
import { HttpResponse, type ResponseTimes } from '../downstream/http-response.js';
import { type Headers, NO_HEADERS } from '../downstream/response-writer.js';
import type { Rope } from '../jsonrpc/index.js';
import { endRefused, methodNotAllowed } from './errors.js';
import type { ParsedRequest } from './pipeline.js';

export interface RawRouteOptions extends ResponseTimes {
  readonly url: string;
  /** Has challenges name the gateway's own metadata; undefined where they stay as they are. */
  readonly metadata: ResourceMetadata | undefined;
}

/** Writes the response to an admitted request. */
export type RawHandler = (request: ParsedRequest, response: HttpResponse) => void;

/**
 * Routes every method of a path to a handler that reads the body and writes the response itself. Fastify's onRequest hooks
 * have run by then; it never looks at the body, which is read as bytes whatever its type.
 */
export function routeRaw(fastify: FastifyInstance, options: RawRouteOptions, handle: RawHandler): void {
  const { url, metadata } = options;
  fastify.route({
    method: fastify.supportedMethods,
    url,
    onRequest: (request, reply) => {
      if (isBrowser(request.raw)) {
        reply
          .code(405)
          .headers({ allow: 'GET, POST, DELETE, OPTIONS', 'content-type': 'text/html; charset=utf-8' });
        reply.send(PAGE);
        return;
      }
      reply.hijack();
      const req = request.raw;
      // Without an Origin there is no header of CORS to pass on.
      const headers = req.headers.origin === undefined ? NO_HEADERS : (reply.getHeaders() as Headers);
      const rewriteChallenge =
        metadata === undefined ? undefined : (value: string) => metadata.challenge(value, req);
      const { httpRequest } = request;
      const onRefused = (error: Rope): void => httpRequest.onRefused(error);
      const writerOptions = { requestId: request.id, headers, rewriteChallenge, onRefused };
      handle(httpRequest, new HttpResponse(req, reply.raw, writerOptions, options));
    },
    handler: () => {},
  });
}

/** What a person sees who opens the URL of a route. */
const PAGE =
  '<!doctype html><title>MCP endpoint</title><p>This is an endpoint of the Model Context Protocol (MCP), served by Eragate. ' +
  'Add this URL to an MCP client to use it.</p>\n';

/** Whether a person has opened the URL: clients of MCP ask for event streams or JSON. */
function isBrowser({ method, headers }: IncomingMessage): boolean {
  const { accept } = headers;
  return (
    method === 'GET' &&
    accept !== undefined &&
    headers['mcp-session-id'] === undefined &&
    /text\/html/i.test(accept) &&
    !/event-stream|json/i.test(accept)
  );
}

/** Responds to a method that a path does not have. */
export function endMethodNotAllowed(response: HttpResponse, method: string | undefined, allow: string): void {
  if (method === 'OPTIONS') response.endEmpty(204, { allow });
  else endRefused(response, methodNotAllowed(method, allow));
}
