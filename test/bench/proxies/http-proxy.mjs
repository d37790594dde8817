// What one would put there instead: @fastify/http-proxy as its documentation sets it up, without a logger. Its `undici`
// options (connections, pipelining) make no difference here; its `http` option doubles the cost.

import httpProxy from '@fastify/http-proxy';
import fastify from 'fastify';

// Proxies idle while the others have their rounds; their connections should survive that.
const app = fastify({ keepAliveTimeout: 120_000 });
await app.register(httpProxy, { upstream: process.argv[2] });
await app.listen({ host: '127.0.0.1', port: 0 });
process.on('disconnect', () => process.exit());
process.send({ port: app.server.address().port });
