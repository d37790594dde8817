import { afterEach, expect, test } from 'vitest';
import type { RouteService } from '../../src/exchange/route-service.js';
import { Ticker } from '../../src/exchange/utils/ticker.js';
import { Forwarding } from '../../src/http/forwarding.js';
import { RequestGuard } from '../../src/http/origins.js';
import { RequestPipeline } from '../../src/http/pipeline.js';
import { RequestIds } from '../../src/http/request-id.js';
import { HttpServer } from '../../src/http/server.js';
import { TrustedProxies } from '../../src/http/trusted-proxies.js';
import { send } from '../support/raw.js';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A server with one endpoint, whose responses are those of the parser: nothing reaches an era. */
function serverWithEndpoint(): HttpServer {
  const ticker = new Ticker();
  const service = { path: '/mcp' } as RouteService;
  const trusted = new TrustedProxies([]);
  const forwarding = new Forwarding({
    headers: 'all',
    query: true,
    neutral: [],
    authorization: true,
    fixed: new Set(),
    fixedParameters: new Set(),
    trusted,
  });
  const server = new HttpServer({
    endpoints: [{ service, inbounds: [], sse: undefined, forwarding, metadata: undefined }],
    pipeline: new RequestPipeline({ onFault: () => {} }),
    guard: new RequestGuard({
      host: '127.0.0.1',
      publicUrl: undefined,
      allowedHosts: [],
      allowedOrigins: [],
    }),
    requestIds: new RequestIds(trusted),
    ticker,
    bodyBytes: 1_000,
    keepAliveMs: 15_000,
    keepAliveTimeoutMs: 5_000,
    publicPath: '',
    onFault: () => {},
  });
  closers.push(() => ticker.stop());
  return server;
}

test('the hooks of a Fastify plugin see the requests of programs to an endpoint, and those to elsewhere', async () => {
  const server = serverWithEndpoint();
  const seen: string[] = [];
  server.fastify.addHook('onRequest', async (request) => {
    seen.push(`onRequest ${request.method} ${request.url} ${request.id}`);
  });
  server.fastify.addHook('onResponse', async (request, reply) => {
    seen.push(`onResponse ${reply.statusCode} ${request.id}`);
  });
  const origin = await server.fastify.listen({ host: '127.0.0.1', port: 0 });
  closers.push(() => server.fastify.close());
  const ids: unknown[] = [];
  for (const path of ['/mcp', '/healthz', '/elsewhere']) {
    const body = path === '/mcp' ? '{' : undefined;
    const { headers } = await send(`${origin}${path}`, body === undefined ? {} : { body });
    ids.push(headers['x-request-id']);
  }
  expect(seen).toEqual([
    `onRequest POST /mcp ${ids[0]}`,
    `onResponse 400 ${ids[0]}`,
    `onRequest GET /healthz ${ids[1]}`,
    `onResponse 200 ${ids[1]}`,
    `onRequest GET /elsewhere ${ids[2]}`,
    `onResponse 404 ${ids[2]}`,
  ]);
});
