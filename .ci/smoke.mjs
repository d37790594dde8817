// node .ci/smoke.mjs NODE: starts the built gateway with that node binary in front of a real legacy server, makes one
// request of each era, and ends it with SIGTERM.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../test/support/free-port.mjs';

const node = process.argv[2] ?? process.execPath;
const scratch = mkdtempSync(join(tmpdir(), 'eragate-smoke-'));
const children = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});
setTimeout(() => {
  console.error('the smoke test took more than 60 s');
  process.exit(1);
}, 60_000).unref();

const port = await freePort();
const backend = `http://127.0.0.1:${port}/mcp`;
const everything = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
);
children.push(
  spawn(process.execPath, [everything, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: 'ignore',
  }),
);
while (
  !(await fetch(backend).then(
    () => true,
    () => false,
  ))
)
  await sleep(50);

const config = join(scratch, 'gateway.yaml');
const routes = [{ path: '/mcp', backend: { url: backend } }];
writeFileSync(config, JSON.stringify({ listen: { host: '127.0.0.1', port: 0 }, routes }));
const gateway = spawn(node, ['dist/main.js', 'serve', '--config', config], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
children.push(gateway);
const url = await new Promise((resolve) => {
  createInterface({ input: gateway.stdout }).on('line', (line) => {
    if (line.includes('listening on')) resolve(JSON.parse(line).url);
  });
});

async function post(headers, body) {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
  return JSON.parse(data).result;
}

assert.equal((await fetch(`${url}/healthz`)).status, 200);
const modern = await post(
  { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'get-sum' },
  {
    method: 'tools/call',
    params: {
      name: 'get-sum',
      arguments: { a: 3, b: 4 },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'smoke', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  },
);
assert.equal(modern.resultType, 'complete');
assert.match(modern.content[0].text, /sum of 3 and 4 is 7/);
const legacy = await post(
  {},
  {
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'smoke', version: '1' },
    },
  },
);
assert.equal(legacy.protocolVersion, '2025-11-25');

const asked = Date.now();
gateway.kill('SIGTERM');
const [code] = await once(gateway, 'exit');
assert.equal(code, 0);
assert.ok(Date.now() - asked < 10_000, 'SIGTERM took too long');
console.log(`the gateway serves both eras and ends well on ${node}`);
process.exit(0);
