import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { StreamCall } from '../downstream/http-call.js';
import type { HttpResponse, ResponseTimes } from '../downstream/http-response.js';
import type { Inbound } from '../eras/index.js';
import { ByEra, type Endpoint } from './endpoint.js';
import { endRefused, INTERNAL, SHUTTING_DOWN } from './errors.js';
import type { ParsedRequest, RequestPipeline } from './pipeline.js';
import { Post, type Receiver } from './post.js';
import { endMethodNotAllowed, routeRaw } from './raw-route.js';
import { callOf } from './read-call.js';

export interface EndpointOptions extends ResponseTimes {
  readonly pipeline: RequestPipeline;
  /** Longest body of a request. */
  readonly bodyBytes: number;
  readonly isClosing: () => boolean;
  readonly onFault: (error: unknown, requestId: string) => void;
}

const ALLOW = 'GET, POST, DELETE, OPTIONS';

/** The MCP endpoint of a route, Streamable HTTP: one path with POST, GET and DELETE. */
export class McpEndpoint {
  readonly #endpoint: Endpoint;
  readonly #options: EndpointOptions;
  readonly #receiver: Receiver;

  constructor(endpoint: Endpoint, options: EndpointOptions) {
    this.#endpoint = endpoint;
    this.#options = options;
    this.#receiver = new ByEra(endpoint);
  }

  register(fastify: FastifyInstance): void {
    const { service, metadata } = this.#endpoint;
    const { ticker, keepAliveMs } = this.#options;
    routeRaw(fastify, { url: service.path, metadata, ticker, keepAliveMs }, this.#handle);
  }

  readonly #handle = (request: ParsedRequest, response: HttpResponse): void => {
    const req = request.message;
    if (this.#options.isClosing() && !resumes(req)) {
      endRefused(response, SHUTTING_DOWN);
      return;
    }
    const call = callOf(this.#endpoint, request, response);
    try {
      if (req.method === 'POST') new Post(this.#receiver, request, call, this.#options).start();
      else this.#other(req.method, call)?.catch((error) => this.#fault(error, call));
    } catch (error) {
      this.#fault(error, call);
    }
  };

  #other(method: string | undefined, call: StreamCall): Promise<void> | void {
    const { service, inbounds } = this.#endpoint;
    if (method !== 'GET' && method !== 'DELETE') return endMethodNotAllowed(call.response, method, ALLOW);
    const inbound = inbounds.find((candidate) => candidate.claimsOther(call)) ?? (inbounds.at(-1) as Inbound);
    return method === 'GET' ? inbound.get(service, call) : inbound.delete(service, call);
  }

  #fault(error: unknown, { requestId, response }: StreamCall): void {
    this.#options.onFault(error, requestId);
    endRefused(response, INTERNAL);
  }
}

/** Whether a request is for the rest of a stream that its client has begun to read. */
function resumes({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers['last-event-id'] !== undefined;
}
