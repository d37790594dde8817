import { type IncomingMessage, METHODS, type RequestListener, type ServerResponse } from 'node:http';
import cors from '@fastify/cors';
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import type { HttpCall, StreamCall } from '../downstream/http-call.js';
import { HttpResponse } from '../downstream/http-response.js';
import { NO_HEADERS } from '../downstream/response-writer.js';
import type { Inbound } from '../eras/index.js';
import { CODE } from '../exchange/errors.js';
import type { Ticker } from '../exchange/ticker.js';
import { errorRope } from '../jsonrpc/index.js';
import { refuseBrokenRequest } from './broken-request.js';
import { sendError, serveDocument } from './document.js';
import { ByEra, type Endpoint } from './endpoint.js';
import { serveMetadata } from './metadata.js';
import type { RequestGuard } from './origins.js';
import { Post, type Receiver } from './post.js';
import { callOf } from './read-call.js';
import { SseEndpoint } from './sse-endpoint.js';

export interface HttpServerOptions {
  readonly endpoints: readonly Endpoint[];
  readonly guard: RequestGuard;
  readonly ticker: Ticker;
  readonly bodyBytes: number;
  readonly keepAliveMs: number;
  /** Path of the public URL, without a slash at its end. */
  readonly publicPath: string;
  readonly onRefused: (reason: string, req: IncomingMessage) => void;
  readonly onFault: (error: unknown) => void;
}

/** For the whole of a request; one that comes slower is cut off with 408. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Of all headers of a request: `Mcp-Param-*` may be many. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Longer than that of the balancers in common use, so that it is never the gateway that closes first. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/** As much of a path as is told. */
const MAX_TOLD_CHARS = 200;
const ALLOWED_METHODS = { allow: 'GET, POST, DELETE, OPTIONS' };

/** The HTTP server in front of the routes: guards first, then one MCP endpoint per route, and the health check. */
export class HttpServer {
  readonly fastify: FastifyInstance;
  readonly #options: HttpServerOptions;
  /** By path: what is posted there. */
  readonly #posts = new Map<string, { readonly endpoint: Endpoint; readonly receiver: Receiver }>();
  #closing = false;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.fastify = Fastify({
      logger: false,
      exposeHeadRoutes: false,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      http: { maxHeaderSize: MAX_HEADER_BYTES },
      return503OnClosing: false,
      forceCloseConnections: true,
      routerOptions: { ignoreTrailingSlash: true },
      clientErrorHandler: refuseBrokenRequest,
      frameworkErrors: (error, _request, reply) =>
        sendError(reply, error.statusCode ?? 400, CODE.server, error.message),
    });
    // Bodies are for the endpoints to read: nowhere else does it matter what is in them, or whether they come at all.
    this.fastify.removeAllContentTypeParsers();
    this.fastify.addContentTypeParser('*', (_request, _payload, done) => done(null));
    this.#cors();
    this.#routes();
    this.#shorten();
  }

  /** From now on new requests are refused, but for those that come back for the rest of an answer. */
  stopAccepting(): void {
    this.#closing = true;
  }

  /** Origin and Host are looked at before anything else but a preflight, which carries nothing out. */
  #guard(): void {
    const { guard, onRefused } = this.#options;
    this.fastify.addHook('onRequest', (request, reply, next) => {
      const { origin, host } = request.raw.headers;
      const reason = guard.refuse(origin, host);
      if (reason === undefined) {
        next();
        return;
      }
      onRefused(reason, request.raw);
      sendError(reply, 403, CODE.server, `Forbidden: ${reason}`);
    });
  }

  #cors(): void {
    const { guard } = this.#options;
    const registered = this.fastify.register(cors, {
      origin: (origin, decide) => decide(null, origin !== undefined && guard.allowsOrigin(origin)),
      methods: ['GET', 'POST', 'DELETE', 'OPTIONS'],
      exposedHeaders: ['Mcp-Session-Id', 'MCP-Protocol-Version', 'WWW-Authenticate', 'Retry-After'],
      maxAge: 600,
      strictPreflight: false,
    });
    // After it, so that a page that is allowed can read why its request was refused.
    registered.after(() => this.#guard());
  }

  #routes(): void {
    const { fastify } = this;
    const { onFault } = this.#options;
    fastify.setErrorHandler((error: FastifyError, _request, reply) => {
      const { statusCode = 500, message } = error;
      if (statusCode < 500) {
        sendError(reply, statusCode, CODE.server, message);
        return;
      }
      onFault(error);
      sendError(reply, 500, CODE.internal, 'Internal error of the gateway');
    });
    fastify.setNotFoundHandler((request, reply) => {
      // Some clients add to the path that they are given.
      const [path = ''] = request.url.slice(0, MAX_TOLD_CHARS).split('?');
      sendError(reply, 404, CODE.server, `Not Found: no route of the gateway has the path ${path}`);
    });
    // Every method that node can read is answered on a route, most of them with 405.
    for (const method of METHODS) {
      if (!fastify.supportedMethods.includes(method)) fastify.addHttpMethod(method);
    }
    serveDocument(fastify, '/healthz', (_request, reply) => {
      reply.header('cache-control', 'no-store').send({ status: 'ok' });
    });
    serveMetadata(fastify, this.#options.endpoints);
    for (const endpoint of this.#options.endpoints) {
      const receiver = new ByEra(endpoint);
      this.#posts.set(endpoint.service.path, { endpoint, receiver });
      this.#sse(endpoint);
      fastify.route({
        method: fastify.supportedMethods,
        url: endpoint.service.path,
        // Taken over before Fastify looks at the body, which is read here as bytes whatever its type.
        onRequest: (request, reply) => {
          reply.hijack();
          const { raw } = request;
          const ofPage = raw.headers.origin !== undefined;
          const extra = ofPage ? (reply.getHeaders() as Record<string, string>) : NO_HEADERS;
          this.#handle(endpoint, receiver, raw, reply.raw, extra);
        },
        handler: () => {},
      });
    }
  }

  /**
   * Takes what programs post to an endpoint, which is nearly all that comes, before Fastify looks for its hooks and
   * route. There is nothing for it in them but the guard, and they cost as much as the reading of a message. All else,
   * refusals included, goes the usual way.
   */
  #shorten(): void {
    const { server } = this.fastify;
    const usual = server.listeners('request') as RequestListener[];
    server.removeAllListeners('request');
    server.on('request', (req, res) => {
      const post = req.method === 'POST' ? this.#posts.get(req.url as string) : undefined;
      const { origin, host } = req.headers;
      if (
        post === undefined ||
        origin !== undefined ||
        this.#options.guard.refuse(origin, host) !== undefined
      )
        for (const listener of usual) listener(req, res);
      else this.#handle(post.endpoint, post.receiver, req, res, NO_HEADERS);
    });
  }

  #sse(endpoint: Endpoint): void {
    if (endpoint.sse === undefined) return;
    const isClosing = (): boolean => this.#closing;
    const options = { ...this.#options, isClosing, onFault: this.#fault };
    new SseEndpoint(endpoint, endpoint.sse, options).register(this.fastify);
  }

  /** @param extra headers of the answer, such as those of CORS */
  #handle(
    endpoint: Endpoint,
    receiver: Receiver,
    req: IncomingMessage,
    res: ServerResponse,
    extra: Readonly<Record<string, string>>,
  ): void {
    const { metadata } = endpoint;
    const rewriteChallenge =
      metadata === undefined ? undefined : (header: string) => metadata.challenge(header, req);
    const response = new HttpResponse(req, res, { headers: extra, rewriteChallenge }, this.#options);
    if (this.#closing && !comesBack(req)) {
      response.end(503, errorRope(undefined, CODE.server, 'The gateway is shutting down'), {
        connection: 'close',
        'retry-after': '1',
      });
      return;
    }
    const call = callOf(endpoint, req, response);
    try {
      if (req.method === 'POST') new Post(receiver, req, call, this.#fault).take(this.#options.bodyBytes);
      else this.#other(endpoint, req, call)?.catch((error) => this.#fault(error, call));
    } catch (error) {
      this.#fault(error, call);
    }
  }

  /** Requests of other methods than POST. */
  #other(
    { service, inbounds }: Endpoint,
    { method }: IncomingMessage,
    call: StreamCall,
  ): Promise<void> | void {
    if (method === 'GET' || method === 'DELETE') {
      const inbound =
        inbounds.find((candidate) => candidate.claimsOther(call)) ?? (inbounds.at(-1) as Inbound);
      return method === 'GET' ? inbound.get(service, call) : inbound.delete(service, call);
    }
    if (method === 'OPTIONS') call.response.endEmpty(204, ALLOWED_METHODS);
    else {
      const message = `Method Not Allowed: ${method}`;
      call.response.end(405, errorRope(undefined, CODE.server, message), ALLOWED_METHODS);
    }
  }

  readonly #fault = (error: unknown, { response }: HttpCall): void => {
    this.#options.onFault(error);
    response.end(500, errorRope(undefined, CODE.internal, 'Internal error of the gateway'));
  };
}

/** Whether it is for the rest of a stream that the client has begun to read. */
function comesBack({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers['last-event-id'] !== undefined;
}
