import { METHODS } from 'node:http';
import cors from '@fastify/cors';
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import type { Ticker } from '../exchange/utils/ticker.js';
import { sendError, serveDocument } from './document.js';
import type { Endpoint } from './endpoint.js';
import { INTERNAL, noLegacySse, notFound, refusal } from './errors.js';
import { McpEndpoint } from './mcp-endpoint.js';
import { serveMetadata } from './metadata.js';
import type { RequestGuard } from './origins.js';
import type { ParsedRequest, RequestPipeline } from './pipeline.js';
import { RawRefusals } from './raw-refusal.js';
import { REQUEST_ID_HEADER, type RequestIds } from './request-id.js';
import { SseEndpoint } from './sse-endpoint.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** The request as the stages of the pipeline see it. */
    httpRequest: ParsedRequest;
  }
}

export interface HttpServerOptions {
  readonly endpoints: readonly Endpoint[];
  readonly pipeline: RequestPipeline;
  readonly requestIds: RequestIds;
  readonly guard: RequestGuard;
  readonly ticker: Ticker;
  readonly bodyBytes: number;
  readonly keepAliveMs: number;
  /** How long an idle connection is kept, in milliseconds. */
  readonly keepAliveTimeoutMs: number;
  /** Path of the public URL, without a slash at its end. */
  readonly publicPath: string;
  readonly onFault: (error: unknown, requestId: string) => void;
}

/** For a whole request; a slower one gets 408. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Of all headers of a request: there may be many `Mcp-Param-*`. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * The HTTP server: the MCP endpoints of the routes, their metadata, and the health check. Fastify's onRequest hooks take
 * every request through the pipeline: it begins, CORS is applied, it is admitted, then the route handles it. Malformed
 * paths, broken requests and CONNECT, for which Fastify runs no hooks, enter the pipeline here too.
 */
export class HttpServer {
  readonly fastify: FastifyInstance;
  readonly #options: HttpServerOptions;
  #ready = true;
  #closing = false;

  constructor(options: HttpServerOptions) {
    const { pipeline, requestIds } = options;
    this.#options = options;
    const refusals = new RawRefusals(pipeline, requestIds);
    this.fastify = Fastify({
      logger: false,
      exposeHeadRoutes: false,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      requestTimeout: REQUEST_TIMEOUT_MS,
      // A missing Host is refused by the guard, so that the pipeline sees the request.
      http: { maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false },
      return503OnClosing: false,
      forceCloseConnections: true,
      routerOptions: { ignoreTrailingSlash: true },
      genReqId: (req) => requestIds.of(req),
      clientErrorHandler: (error, socket) => refusals.onClientError(error, socket),
      frameworkErrors: (error, request, reply) => {
        request.httpRequest = pipeline.begin(request.id, request.raw, reply.raw);
        reply.header(REQUEST_ID_HEADER, request.id);
        sendError(reply, refusal(error.statusCode ?? 400, error.message));
      },
    });
    this.fastify.server
      .on('connect', (req, socket) => refusals.onConnect(req, socket as typeof req.socket))
      // Without a listener, node would refuse the expectation before the pipeline sees the request; the guard does.
      .on('checkExpectation', (req, res) => this.fastify.routing(req, res));
    // Endpoints read bodies themselves, and all other paths ignore them.
    this.fastify.removeAllContentTypeParsers();
    this.fastify.addContentTypeParser('*', (_request, _payload, done) => done(null));
    this.#hooks();
    this.#errors();
    this.#routes();
  }

  /** The readiness check fails from now on. */
  endReadiness(): void {
    this.#ready = false;
  }

  /** Refuses further requests, except those that resume a stream. */
  stopAccepting(): void {
    this.#closing = true;
  }

  #hooks(): void {
    const { fastify } = this;
    const { pipeline, guard } = this.#options;
    fastify.decorateRequest('httpRequest');
    fastify.addHook('onRequest', (request, reply, next) => {
      request.httpRequest = pipeline.begin(request.id, request.raw, reply.raw);
      reply.header(REQUEST_ID_HEADER, request.id);
      next();
    });
    const registered = fastify.register(cors, {
      origin: (origin, decide) => decide(null, origin !== undefined && guard.allowsOrigin(origin)),
      methods: ['GET', 'POST', 'DELETE', 'OPTIONS'],
      exposedHeaders: [
        'Mcp-Session-Id',
        'MCP-Protocol-Version',
        'WWW-Authenticate',
        'Retry-After',
        'X-Request-Id',
      ],
      maxAge: 600,
      strictPreflight: false,
    });
    // After CORS, so that a page that is allowed can read why its request was refused.
    registered.after(() => {
      fastify.addHook('onRequest', (request, reply, next) => {
        const verdict = pipeline.admit(request.httpRequest);
        if (verdict === undefined) next();
        else if (!(verdict instanceof Promise)) sendError(reply, verdict);
        else verdict.then((refusal) => (refusal === undefined ? next() : sendError(reply, refusal)), next);
      });
    });
  }

  #errors(): void {
    const { fastify } = this;
    fastify.setErrorHandler((error: FastifyError, request, reply) => {
      const { statusCode: status = 500, message } = error;
      if (status < 500) {
        sendError(reply, refusal(status, message));
        return;
      }
      this.#options.onFault(error, request.id);
      sendError(reply, INTERNAL);
    });
    // The two paths of HTTP+SSE below routes that do not serve it.
    const ssePaths = new Map<string, string>(
      this.#options.endpoints
        .filter(({ sse }) => sse === undefined)
        .flatMap(({ service: { path } }) =>
          ['sse', 'messages'].map((name) => [`${path.replace(/\/$/, '')}/${name}`, path] as const),
        ),
    );
    fastify.setNotFoundHandler((request, reply) => {
      const route = ssePaths.get((request.url.split('?', 1)[0] ?? '').replace(/\/$/, ''));
      sendError(reply, route === undefined ? notFound(request.url) : noLegacySse(route));
    });
  }

  #routes(): void {
    const { fastify } = this;
    const options = { ...this.#options, isClosing: () => this.#closing };
    // Every method that node can read gets a response on each route, most of them 405.
    for (const method of METHODS) {
      if (!fastify.supportedMethods.includes(method)) fastify.addHttpMethod(method);
    }
    serveDocument(fastify, '/healthz', (_request, reply) => {
      reply.header('cache-control', 'no-store').send({ status: 'ok' });
    });
    serveDocument(fastify, '/readyz', (_request, reply) => {
      const [code, status] = this.#ready ? [200, 'ok'] : [503, 'closing'];
      reply.code(code).header('cache-control', 'no-store').send({ status });
    });
    serveMetadata(fastify, options.endpoints);
    for (const endpoint of options.endpoints) {
      if (endpoint.sse !== undefined) new SseEndpoint(endpoint, endpoint.sse, options).register(fastify);
      new McpEndpoint(endpoint, options).register(fastify);
    }
  }
}
