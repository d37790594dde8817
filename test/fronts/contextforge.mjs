// IBM ContextForge, which registers servers and serves their tools again: under names of its own, to clients of the
// older revisions that show a token.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pythonPackage } from './install.mjs';

const VERSION = '1.0.7.post20260921';
const ADMIN = 'admin@example.com';
const START_MS = 90_000;
let bin;

const secret = () => randomBytes(32).toString('base64url');

function environment(folder) {
  return {
    DATABASE_URL: `sqlite:///${folder}/contextforge.db`,
    CACHE_TYPE: 'memory',
    // By default it keeps no sessions and has no streams, so that notifications are lost.
    USE_STATEFUL_SESSIONS: 'true',
    JSON_RESPONSE_ENABLED: 'false',
    LOG_LEVEL: 'CRITICAL',
    MCPGATEWAY_UI_ENABLED: 'false',
    MCPGATEWAY_ADMIN_API_ENABLED: 'true',
    JWT_SECRET_KEY: secret(),
    AUTH_ENCRYPTION_SECRET: secret(),
    BASIC_AUTH_PASSWORD: secret(),
    PLATFORM_ADMIN_EMAIL: ADMIN,
    PLATFORM_ADMIN_PASSWORD: secret(),
    RATE_LIMITING_ENABLED: 'false',
    SSRF_ALLOW_LOCALHOST: 'true',
    SSRF_ALLOW_PRIVATE_NETWORKS: 'true',
  };
}

async function untilHealthy(origin) {
  const deadline = Date.now() + START_MS;
  while (Date.now() < deadline) {
    const answer = await fetch(`${origin}/health`).catch(() => undefined);
    await answer?.text();
    if (answer?.ok) return;
    await delay(500);
  }
  throw new Error('ContextForge did not start');
}

async function ask(origin, token, path, body) {
  const answer = await fetch(origin + path, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok)
    throw new Error(`ContextForge answered ${path} with ${answer.status} ${text.slice(0, 300)}`);
  return JSON.parse(text);
}

/** What its clients know tools and prompts by, beside what the server behind it calls them. */
const namesOf = (items) => items.map(({ originalName, name }) => [originalName, name]);
const ids = (items) => items.map(({ id }) => id);

/** Has it serve all that is behind it as one server; the path of that, and the names of what it has. */
async function register(origin, token, backend) {
  const gateway = { name: 'bench', url: `${backend}/mcp`, transport: 'STREAMABLEHTTP' };
  await ask(origin, token, '/gateways', gateway);
  const [tools, resources, prompts] = await Promise.all(
    ['/tools', '/resources', '/prompts'].map((path) => ask(origin, token, `${path}?limit=0`)),
  );
  const server = await ask(origin, token, '/servers', {
    server: {
      name: 'bench',
      associated_tools: ids(tools),
      associated_resources: ids(resources),
      associated_prompts: ids(prompts),
    },
  });
  return { path: `/servers/${server.id}/mcp`, names: new Map([...namesOf(tools), ...namesOf(prompts)]) };
}

export const contextforge = {
  name: 'IBM ContextForge',
  slow: true,
  cells: ['LL'],
  limit: 'tools get other names; older revisions only',
  async prepare() {
    bin = await pythonPackage(`mcp-contextforge-gateway==${VERSION}`);
    return VERSION;
  },
  async start({ folder, port, backend, spawn }) {
    const env = environment(folder);
    const child = spawn(join(bin, 'mcpgateway'), ['--host', '127.0.0.1', '--port', port], env);
    const origin = `http://127.0.0.1:${port}`;
    await untilHealthy(origin);
    const make = ['-m', 'mcpgateway.utils.create_jwt_token', '--username', ADMIN, '--admin', '--exp', '600'];
    const made = execFileSync(join(bin, 'python'), make, {
      env: { ...process.env, ...env },
      encoding: 'utf8',
    });
    const token = made.trim().split('\n').at(-1);
    const access = {
      headers: { authorization: `Bearer ${token}` },
      ...(await register(origin, token, backend)),
    };
    return Object.assign(child, { access });
  },
};
