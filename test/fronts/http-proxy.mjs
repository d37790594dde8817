// The proxy that a Fastify user would take. It passes bytes on, so client and server must be of one era.

import { createRequire } from 'node:module';
import { forkServer } from '../bench/processes.mjs';

export const httpProxy = {
  name: '@fastify/http-proxy',
  cells: ['LL', 'MM'],
  limit: 'passes bytes on; one era only',
  prepare: () => createRequire(import.meta.url)('@fastify/http-proxy/package.json').version,
  start: ({ backend }) => forkServer('proxies/http-proxy.mjs', backend),
};
