import { type IncomingMessage, METHODS } from 'node:http';
import cors from '@fastify/cors';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { Inbound } from '../eras/index.js';
import { principalOf } from '../exchange/digest.js';
import { CODE } from '../exchange/errors.js';
import type { RouteService } from '../exchange/route-service.js';
import type { Ticker } from '../exchange/ticker.js';
import type { ForwardedHeaders } from '../exchange/types.js';
import {
  type Batch,
  errorRope,
  type Frame,
  FrameError,
  PARSE_ERROR,
  parseBody,
  toValidUtf8,
} from '../jsonrpc/index.js';
import { Answer } from '../transports/answer.js';
import type { HttpCall } from '../transports/inbound-call.js';
import { readMcpHeaders } from '../transports/mcp-headers.js';
import { BodyRefused, discardBody, readBody } from './body.js';
import { refuseBrokenRequest } from './broken-request.js';
import { isJson } from './media-type.js';
import type { RequestGuard } from './origins.js';

/** A route as the HTTP server knows it. */
export interface Endpoint {
  readonly service: RouteService;
  readonly inbounds: readonly Inbound[];
  /** Whether the caller's credentials go on to the backend. */
  readonly forwardAuthorization: boolean;
}

export interface HttpServerOptions {
  readonly endpoints: readonly Endpoint[];
  readonly guard: RequestGuard;
  readonly ticker: Ticker;
  readonly bodyBytes: number;
  readonly keepAliveMs: number;
  readonly onRefused: (reason: string, req: IncomingMessage) => void;
  readonly onFault: (error: unknown) => void;
}

/** For the whole of a request; one that comes slower is cut off with 408. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Of all headers of a request: `Mcp-Param-*` may be many. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Longer than that of the balancers in common use, so that it is never the gateway that closes first. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const ALLOWED_METHODS = { allow: 'GET, POST, DELETE, OPTIONS' };
const NO_HEADERS: Readonly<Record<string, string>> = {};

/** The HTTP server in front of the routes: guards first, then one MCP endpoint per route, and the health check. */
export class HttpServer {
  readonly fastify: FastifyInstance;
  readonly #options: HttpServerOptions;
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
    this.#cors();
    this.#routes();
  }

  /** From now on new requests are refused. */
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
    fastify.setNotFoundHandler((_request, reply) => {
      sendError(reply, 404, CODE.server, 'Not Found: no route of the gateway has this path');
    });
    fastify.get('/healthz', (_request, reply) => {
      reply.header('cache-control', 'no-store').send({ status: 'ok' });
    });
    // Every method that node can read is answered on a route, most of them with 405.
    for (const method of METHODS) {
      if (!fastify.supportedMethods.includes(method)) fastify.addHttpMethod(method);
    }
    for (const endpoint of this.#options.endpoints) {
      fastify.route({
        method: fastify.supportedMethods,
        url: endpoint.service.path,
        // Taken over before Fastify looks at the body, which is read here as bytes whatever its type.
        onRequest: (request, reply) => {
          reply.hijack();
          this.#handle(endpoint, request, reply).catch(onFault);
        },
        handler: () => {},
      });
    }
  }

  async #handle(endpoint: Endpoint, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { ticker, keepAliveMs, onFault } = this.#options;
    const req = request.raw;
    const extra =
      req.headers.origin === undefined ? NO_HEADERS : (reply.getHeaders() as Record<string, string>);
    const answer = new Answer(req, reply.raw, extra, { ticker, keepAliveMs });
    try {
      if (this.#closing) {
        answer.end(503, errorRope(undefined, CODE.server, 'The gateway is shutting down'), {
          connection: 'close',
          'retry-after': '1',
        });
      } else await this.#dispatch(endpoint, req, answer);
    } catch (error) {
      onFault(error);
      answer.end(500, errorRope(undefined, CODE.internal, 'Internal error of the gateway'));
    }
  }

  async #dispatch(endpoint: Endpoint, req: IncomingMessage, answer: Answer): Promise<void> {
    const { service, inbounds } = endpoint;
    const { method } = req;
    const call = callOf(endpoint, req, answer);
    if (method === 'GET' || method === 'DELETE') {
      const inbound =
        inbounds.find((candidate) => candidate.claimsOther(call)) ?? (inbounds.at(-1) as Inbound);
      if (method === 'GET') await inbound.get(service, call);
      else await inbound.delete(service, call);
      return;
    }
    if (method === 'OPTIONS') {
      answer.endEmpty(204, ALLOWED_METHODS);
      return;
    }
    if (method !== 'POST') {
      answer.end(405, errorRope(undefined, CODE.server, `Method Not Allowed: ${method}`), ALLOWED_METHODS);
      return;
    }
    const body = await this.#readMessage(req, answer);
    if (body === undefined) return;
    const inbound =
      inbounds.find((candidate) => candidate.claimsPost(call, body)) ?? (inbounds.at(-1) as Inbound);
    if (body.type === 'batch' && inbound !== inbounds.at(-1)) {
      answer.end(
        400,
        errorRope(undefined, CODE.invalidRequest, 'Invalid Request: batches exist in 2025-03-26 alone'),
      );
      return;
    }
    await inbound.post(service, call, body);
  }

  async #readMessage(req: IncomingMessage, answer: Answer): Promise<Frame | Batch | undefined> {
    const type = req.headers['content-type'];
    if (type !== undefined && !isJson(type)) {
      answer.end(
        415,
        errorRope(undefined, CODE.server, 'Unsupported Media Type: Content-Type must be application/json'),
      );
      return undefined;
    }
    try {
      return readMessage(await readBody(req, this.#options.bodyBytes));
    } catch (error) {
      if (error instanceof BodyRefused) {
        answer.end(error.status, errorRope(undefined, CODE.server, error.message));
        discardBody(req);
      } else if (error instanceof FrameError) {
        answer.end(400, errorRope(error.id, error.code, error.message));
      } else throw error;
      return undefined;
    }
  }
}

function callOf(endpoint: Endpoint, req: IncomingMessage, answer: Answer): HttpCall {
  const { headers } = req;
  const { authorization } = headers;
  const forwarded: { -readonly [K in keyof ForwardedHeaders]: ForwardedHeaders[K] } = {};
  if (authorization !== undefined && endpoint.forwardAuthorization) forwarded.authorization = authorization;
  if (typeof headers['traceparent'] === 'string') forwarded.traceparent = headers['traceparent'];
  if (typeof headers['tracestate'] === 'string') forwarded.tracestate = headers['tracestate'];
  const lastEventId = headers['last-event-id'];
  return {
    headers: readMcpHeaders(req.rawHeaders),
    principal: principalOf(authorization),
    forwarded,
    answer,
    lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
  };
}

/** @throws FrameError */
function readMessage(body: Buffer): Frame | Batch {
  const { bytes, replaced } = toValidUtf8(body);
  const message = parseBody(bytes);
  if (!replaced) return message;
  const id = message.type === 'request' ? message.id : undefined;
  throw new FrameError(PARSE_ERROR, 'Parse error: the body is not UTF-8', id);
}

function sendError(reply: FastifyReply, status: number, code: number, message: string): void {
  reply
    .code(status)
    .header('content-type', 'application/json')
    .send(errorRope(undefined, code, message).toBuffer());
}
