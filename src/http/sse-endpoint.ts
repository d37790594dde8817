import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { HttpCall } from '../downstream/http-call.js';
import { HttpResponse } from '../downstream/http-response.js';
import type { ClientResponse } from '../downstream/response.js';
import { type Headers, NO_HEADERS } from '../downstream/response-writer.js';
import type { SseInbound } from '../eras/index.js';
import { CODE } from '../exchange/errors.js';
import type { Ticker } from '../exchange/ticker.js';
import { errorRope } from '../jsonrpc/index.js';
import type { Endpoint } from './endpoint.js';
import { Post } from './post.js';
import { callOf } from './read-call.js';

export interface SseEndpointOptions {
  readonly ticker: Ticker;
  readonly keepAliveMs: number;
  readonly bodyBytes: number;
  /** Path of the public URL, which a proxy in front takes off; without a slash at its end. */
  readonly publicPath: string;
  readonly isClosing: () => boolean;
  readonly onFault: (error: unknown, call: HttpCall) => void;
}

type Handle = (req: IncomingMessage, reply: FastifyReply, extra: Headers) => void;

/** The two places of a route for clients on HTTP+SSE: `<path>/sse` for the stream, `<path>/messages` for what they send. */
export class SseEndpoint {
  readonly #endpoint: Endpoint;
  readonly #inbound: SseInbound;
  readonly #options: SseEndpointOptions;

  constructor(endpoint: Endpoint, inbound: SseInbound, options: SseEndpointOptions) {
    this.#endpoint = endpoint;
    this.#inbound = inbound;
    this.#options = options;
  }

  register(fastify: FastifyInstance): void {
    const path = this.#endpoint.service.path.replace(/\/$/, '');
    this.#route(fastify, `${path}/sse`, 'GET', (req, reply, extra) => {
      const response = new HttpResponse(req, reply.raw, { headers: extra }, this.#options);
      if (this.#refuseLate(response)) return;
      this.#inbound.open(
        callOf(this.#endpoint, req, response),
        `${this.#options.publicPath}${path}/messages`,
      );
    });
    this.#route(fastify, `${path}/messages`, 'POST', (req, reply, extra) => {
      const response = new HttpResponse(req, reply.raw, { headers: extra }, this.#options);
      if (this.#refuseLate(response)) return;
      const call = callOf(this.#endpoint, req, response);
      const sessionId =
        new URL(req.url ?? '/', 'http://localhost').searchParams.get('sessionId') ?? undefined;
      const { service } = this.#endpoint;
      const receiver = { pass: this.#inbound.post.bind(this.#inbound, service, call, sessionId) };
      new Post(receiver, req, call, this.#options.onFault).take(this.#options.bodyBytes);
    });
  }

  #route(fastify: FastifyInstance, url: string, method: 'GET' | 'POST', handle: Handle): void {
    const allow = { allow: `${method}, OPTIONS` };
    fastify.route({
      method: fastify.supportedMethods,
      url,
      // As with the endpoint itself, bodies are not for Fastify to read.
      onRequest: (request: FastifyRequest, reply: FastifyReply) => {
        reply.hijack();
        const req = request.raw;
        const extra =
          req.headers.origin === undefined ? NO_HEADERS : (reply.getHeaders() as Record<string, string>);
        if (req.method === method) {
          handle(req, reply, extra);
          return;
        }
        const response = new HttpResponse(req, reply.raw, { headers: extra }, this.#options);
        if (req.method === 'OPTIONS') response.endEmpty(204, allow);
        // Clients that try Streamable HTTP first learn from it what the place is for.
        else response.end(405, errorRope(undefined, CODE.server, `Method Not Allowed: ${req.method}`), allow);
      },
      handler: () => {},
    });
  }

  #refuseLate(response: ClientResponse): boolean {
    if (!this.#options.isClosing()) return false;
    response.end(503, errorRope(undefined, CODE.server, 'The gateway is shutting down'), {
      connection: 'close',
      'retry-after': '1',
    });
    return true;
  }
}
