// npm run demo: a real legacy server, the gateway in front of it, and two calls to try. Ctrl-C ends both.
// node config/demo.mjs [FILE] runs another configuration; BACKEND_URL in it is the URL of the server.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const file = process.argv[2] ?? 'config/demo.yaml';
const children = [];

/** Starts a child process. It ends with this one; if it exits by itself, the demo ends. */
function start(args, env, stdio) {
  const child = spawn(process.execPath, args, { cwd: root, env: { ...process.env, ...env }, stdio });
  children.push(child);
  child.once('exit', (code) => end(code ?? 0));
  return child;
}

function end(code) {
  process.exitCode ??= code;
  for (const child of children) child.kill('SIGTERM');
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => end(0));

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function answering(url) {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if (
      await fetch(url).then(
        () => true,
        () => false,
      )
    )
      return;
    await sleep(50);
  }
  throw new Error(`no response from ${url}`);
}

/** Prints the gateway's log; resolves with the URL of its first route. */
function listening(gateway) {
  return new Promise((resolve) => {
    createInterface({ input: gateway.stdout }).on('line', (line) => {
      console.log(line);
      if (!line.includes('listening on')) return;
      const { url, routes } = JSON.parse(line);
      resolve(`${url}${routes[0]}`);
    });
  });
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'curl', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const modern = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'get-sum', arguments: { a: 3, b: 4 }, _meta: META },
};
const legacy = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'curl', version: '1' } },
};

function curl(url, headers, body) {
  const all = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `  -H '${name}: ${value}' \\`);
  return [`curl -si ${url} \\`, ...lines, `  -d '${JSON.stringify(body)}'`].join('\n');
}

const port = await freePort();
const backend = `http://127.0.0.1:${port}/mcp`;
const server = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'));
start([server, 'streamableHttp'], { PORT: String(port) }, 'ignore');
await answering(backend);
const gateway = start(['dist/main.js', 'serve', '--config', file], { BACKEND_URL: backend }, [
  'ignore',
  'pipe',
  'inherit',
]);
const url = await listening(gateway);
const asModern = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'get-sum' };
console.log(`
Eragate listens on ${url}
in front of ${backend}, a legacy server.

A call of a client of revision 2026-07-28, without a handshake:

${curl(url, asModern, modern)}

The handshake of a client of revision 2025-11-25:

${curl(url, {}, legacy)}

Ctrl-C ends the gateway and the server.
`);
