// A server on standard streams, written by hand so that it can misbehave: `node server.mjs OPTIONS`, JSON.
//   era         'legacy' (default), or 'modern'
//   journal     file to which the process writes a line for its start and one for each message that it gets
//   banner      text to write to standard output first
//   exitAt      exit with this code at the start, or { method: code }: when that method is asked for
//   silentOn    methods that are not answered; '*' for all
//   deafOn      method after which it reads nothing any more
//   ignoreEnd   true: neither the end of standard input nor SIGTERM ends it
//   refuse      true: `initialize` is refused
//   babble      true: writes what is no message, without an end
//   asksAtOnce  true: asks for the roots as soon as it may
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';

const options = JSON.parse(process.argv[2] ?? '{}');
const journal = (entry) => {
  if (options.journal) appendFileSync(options.journal, `${JSON.stringify(entry)}\n`);
};
journal({ started: process.pid });

const write = (text) => process.stdout.write(text);
const send = (message) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const notify = (method, params) => send({ method, params });
const later = (ms, work) => setTimeout(work, ms);

if (typeof options.exitAt === 'number') {
  process.stderr.write('cannot find the configuration\n');
  process.exit(options.exitAt);
}
if (options.banner) write(options.banner);
if (options.babble) {
  const more = () => {
    while (write('y\n'.repeat(10_000)));
    process.stdout.once('drain', more);
  };
  more();
}
if (options.ignoreEnd) {
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 1_000);
}

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const waiting = new Map();
const listeners = new Map();
let nextId = 1;
let deaf = false;
let batched;
const ask = (method, params) =>
  new Promise((resolve) => {
    const id = `question-${nextId++}`;
    waiting.set(id, resolve);
    send({ id, method, params });
  });

const text = (value) => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }],
  ...(options.era === 'modern' && { resultType: 'complete' }),
});

const NOISE = [
  '🚀 Server ready!',
  'INFO [main] listening',
  '',
  '   ',
  '{not json',
  '{"level":"info","msg":"started"}',
  '[1]',
  '[]',
  '42',
  '"text"',
  'null',
  '{"jsonrpc":"1.0","method":"x"}',
  '{"jsonrpc":"2.0"}',
  '\u001b[32mgreen\u001b[0m',
  'x'.repeat(3 * 1024 * 1024),
];

const TOOLS = {
  echo: (args, meta) => text({ args, meta: meta ?? null }),
  pid: () => text(String(process.pid)),
  environment: () => text(process.env),
  folder: () => text(process.cwd()),
  async slow({ ms = 50, steps = 0 }, meta) {
    for (let step = 1; step <= steps; step++) {
      if (meta?.progressToken !== undefined)
        notify('notifications/progress', { progressToken: meta.progressToken, progress: step, total: steps });
      await new Promise((resolve) => later(ms / (steps || 1), resolve));
    }
    if (steps === 0) await new Promise((resolve) => later(ms, resolve));
    return text('done');
  },
  hang: () => new Promise(() => {}),
  /** Does nothing else any more. */
  block() {
    for (;;);
  },
  exit: ({ code }) => process.exit(code),
  closeOutput() {
    process.stdout.end();
    return new Promise(() => {});
  },
  kill: () => process.kill(process.pid, 'SIGKILL'),
  noise() {
    for (const line of NOISE) write(`${line}\n`);
    write('\r\n');
    return text('after the noise');
  },
  // Lines end in CRLF and begin with a byte order mark.
  windows: () => ({ raw: (message) => write(`\uFEFF${JSON.stringify(message)}\r\n`), ...text('windows') }),
  pieces: ({ value }) => ({
    async raw(message) {
      for (const byte of Buffer.from(`${JSON.stringify(message)}\n`)) {
        process.stdout.write(Buffer.from([byte]));
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    ...text(value),
  }),
  numbers: () => ({
    raw: ({ id }) =>
      write(
        `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","content":[],"structuredContent":{"n":12345678901234567890, "f":1.0,"e":1E400}}}\n`,
      ),
  }),
  invalid: () => ({
    raw: ({ id }) => {
      write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
      process.stdout.write(Buffer.from([0xc0, 0xaf]));
      write('"}]}}\n');
    },
  }),
  // Answered together with the next `batch`.
  batched: () => ({
    raw: (message) => {
      batched = message;
    },
    ...text('batched'),
  }),
  batch: () => ({
    raw: (message) => write(`${JSON.stringify([1, batched, message])}\n`),
    ...text('batch'),
  }),
  stringId: () => ({
    raw: (message) => send({ ...message, id: String(message.id) }),
    ...text('as a string'),
  }),
  sessionExpired: () => ({
    raw: ({ id }) => send({ id, error: { code: -32000, message: 'Session expired' } }),
  }),
  nullId: () => ({ raw: () => send({ id: null, error: { code: -32600, message: 'who asks?' } }) }),
  twice: () => ({
    raw(message) {
      send({ id: 987_654, result: {} });
      send(message);
      send(message);
    },
    ...text('once'),
  }),
  big: ({ bytes, idFirst }) => ({
    raw({ id }) {
      const result = text('x'.repeat(bytes));
      send(idFirst ? { id, result } : { result, id });
    },
  }),
  bigNotification({ bytes }) {
    notify('notifications/message', { level: 'info', data: 'x'.repeat(bytes) });
    return text('after it');
  },
  // Answers once all of it has been read.
  async chatty({ lines, bytes }) {
    for (let i = 0; i < lines; i++) {
      const line = `${i} ${'e'.repeat(bytes)}\n`;
      await new Promise((resolve) => process.stderr.write(line, resolve));
    }
    return text('said');
  },
  log({ data }) {
    notify('notifications/message', { level: 'info', data });
    return text('logged');
  },
  // Writes as fast as it is read.
  async flood({ count }) {
    for (let i = 0; i < count; i++) {
      const params = { level: 'info', data: `${i} ${'y'.repeat(1000)}` };
      const line = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params })}\n`;
      if (!process.stdout.write(line)) await new Promise((resolve) => process.stdout.once('drain', resolve));
      if (i % 1000 === 999) journal({ flooded: i + 1 });
    }
    return text('flooded');
  },
  // Asks for what it does not read.
  async pester({ method, count, bytes }) {
    process.stdin.pause();
    setInterval(() => {}, 1_000);
    for (let i = 0; i < count; i++) {
      const line = `${JSON.stringify({ jsonrpc: '2.0', id: `${i} ${'z'.repeat(bytes)}`, method })}\n`;
      if (!process.stdout.write(line)) await new Promise((resolve) => process.stdout.once('drain', resolve));
    }
    return text('pestered');
  },
  /** @param goesOn true: is not done once it has its answer */
  async ask({ method, params, goesOn }) {
    const answer = await ask(method, params);
    return goesOn ? new Promise(() => {}) : text(answer);
  },
  change() {
    notify('notifications/tools/list_changed', {});
    for (const id of listeners.keys())
      notify('notifications/tools/list_changed', { _meta: { [SUBSCRIPTION]: id } });
    return text('changed');
  },
  // As mcp-go 1.2.1 does on standard streams.
  untagged({ method, params }) {
    notify(method, params);
    return text('changed');
  },
  update({ uri }) {
    notify('notifications/resources/updated', { uri });
    return text('updated');
  },
  endListening() {
    for (const id of listeners.keys()) notify('notifications/cancelled', { requestId: id });
    listeners.clear();
    return text('ended');
  },
  // A process in the server's group that nothing but SIGKILL ends.
  offspring() {
    const stubborn = `process.on('SIGTERM', () => {}); process.on('SIGHUP', () => {}); setInterval(() => {}, 1000)`;
    const child = spawn(process.execPath, ['-e', stubborn], { stdio: ['ignore', 'inherit', 'inherit'] });
    return text(String(child.pid));
  },
};

const capabilities = { tools: { listChanged: true }, logging: {}, resources: { subscribe: true } };
const serverInfo = { name: 'by-hand', version: '1' };

const LEGACY = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities, serverInfo }),
  ping: () => ({}),
  'logging/setLevel': () => ({}),
  'resources/subscribe': () => ({}),
  'resources/unsubscribe': () => ({}),
};
const MODERN = {
  'server/discover': () => ({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities,
    _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    ttlMs: 0,
    cacheScope: 'private',
  }),
  'subscriptions/listen': ({ notifications }, id) => {
    listeners.set(id, notifications);
    notify('notifications/subscriptions/acknowledged', { _meta: { [SUBSCRIPTION]: id }, notifications });
    return new Promise(() => {});
  },
};
const METHODS = {
  ...(options.era === 'modern' ? MODERN : LEGACY),
  'tools/list': () => ({
    tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: 'object' } })),
    ...(options.era === 'modern' && { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }),
  }),
  'tools/call': ({ name, arguments: args = {}, _meta }) => TOOLS[name](args, _meta),
};

async function onRequest({ id, method, params = {} }) {
  const code = options.exitAt?.[method];
  if (code !== undefined) process.exit(code);
  if (options.silentOn === '*' || options.silentOn?.includes(method)) return;
  if (options.deafOn === method) {
    deaf = true;
    process.stdin.pause();
    setInterval(() => {}, 1_000);
    return;
  }
  const run = METHODS[method];
  if (run === undefined || (options.refuse && method === 'initialize')) {
    send({ id, error: { code: -32601, message: `Method not found: ${method}` } });
    return;
  }
  const { raw, ...result } = await run(params, id);
  const message = { jsonrpc: '2.0', id, result };
  if (raw === undefined) send(message);
  else await raw(message);
}

let rest = [];
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  rest.push(chunk);
  if (!chunk.includes('\n')) return;
  const lines = rest.join('').split('\n');
  rest = [lines.pop()];
  for (const line of lines) {
    if (deaf) return;
    const message = JSON.parse(line);
    journal(message);
    if (message.method === undefined) waiting.get(message.id)?.(message.result ?? message.error);
    else if (message.id !== undefined) void onRequest(message);
    else if (message.method === 'notifications/initialized' && options.asksAtOnce)
      void ask('roots/list').then((roots) => journal({ roots }));
    else if (message.method === 'notifications/cancelled') listeners.delete(message.params.requestId);
  }
});
process.stdin.on('end', () => {
  journal({ ended: process.pid });
  if (!options.ignoreEnd) process.exit(0);
});
