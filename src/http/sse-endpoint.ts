import type { FastifyInstance } from 'fastify';
import type { SseInbound } from '../eras/index.js';
import type { Endpoint } from './endpoint.js';
import { endRefused, SHUTTING_DOWN } from './errors.js';
import type { EndpointOptions } from './mcp-endpoint.js';
import { Post } from './post.js';
import { endMethodNotAllowed, type RawHandler, routeRaw } from './raw-route.js';
import { callOf } from './read-call.js';

export interface SseEndpointOptions extends EndpointOptions {
  /** Path of the public URL, which a proxy in front removes; without a slash at its end. */
  readonly publicPath: string;
}

/** Parameter that names the stream of a message. */
const SESSION_ID = 'sessionId';

/** The two paths of a route for HTTP+SSE: `<path>/sse` for the stream, `<path>/messages` for what the client sends. */
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
    const { service } = this.#endpoint;
    const path = service.path.replace(/\/$/, '');
    const messages = `${path}/messages`;
    this.#route(fastify, `${path}/sse`, 'GET', (request, response) => {
      const call = callOf(this.#endpoint, request, response);
      const { query } = call.forwarded;
      // What the client asks for in the URL of its stream is for all its messages.
      const suffix = query === undefined ? '' : `?${query}`;
      this.#inbound.open(call, `${this.#options.publicPath}${messages}${suffix}`);
    });
    this.#route(fastify, messages, 'POST', (request, response) => {
      const call = callOf(this.#endpoint, request, response, SESSION_ID);
      const { searchParams } = new URL(request.message.url ?? '/', 'http://localhost');
      const sessionId = searchParams.get(SESSION_ID) ?? undefined;
      const receiver = { pass: this.#inbound.post.bind(this.#inbound, service, call, sessionId) };
      new Post(receiver, request, call, this.#options).start();
    });
  }

  #route(fastify: FastifyInstance, url: string, method: 'GET' | 'POST', handle: RawHandler): void {
    const { ticker, keepAliveMs, isClosing } = this.#options;
    routeRaw(fastify, { url, metadata: undefined, ticker, keepAliveMs }, (request, response) => {
      // Clients that try Streamable HTTP first learn from 405 that the path is of HTTP+SSE.
      const req = request.message;
      if (req.method !== method) endMethodNotAllowed(response, req.method, `${method}, OPTIONS`);
      else if (isClosing()) endRefused(response, SHUTTING_DOWN);
      else handle(request, response);
    });
  }
}
