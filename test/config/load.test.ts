// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of the gateway file look the same
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError, loadConfig, parseConfig } from '../../src/config/index.js';
import { withBackend, withLine } from './support.js';

const parse = (text: string, env: Record<string, string> = {}) => parseConfig(text, 'gateway.yaml', env);

test('a file with one path and one URL gets every default', () => {
  expect(parse(withLine(''))).toEqual({
    listen: {
      host: '0.0.0.0',
      port: 8080,
      allowedHosts: [],
      allowedOrigins: [],
      trustedProxies: ['127.0.0.0/8', '::1'],
      keepAliveTimeoutMs: 3_605_000,
    },
    sealKeys: [],
    keepAliveMs: 15_000,
    shutdown: { delayMs: 0, graceMs: 5_000 },
    log: { level: 'info' },
    limits: {
      bodyBytes: 4 * 2 ** 20,
      resultBytes: 64 * 2 ** 20,
      rounds: 10,
      listeners: 1024,
      sessions: 10_000,
      exchanges: 10_000,
      processes: 100,
      clientStateBytes: 64 * 2 ** 20,
      cacheBytes: 64 * 2 ** 20,
      replayBytes: 64 * 2 ** 20,
    },
    routes: [
      {
        path: '/mcp',
        legacySse: false,
        backend: {
          url: 'http://b:1/mcp',
          era: 'auto',
          leg: 'auto',
          transport: 'auto',
          headers: {},
          authorization: 'forward',
          forward: { headers: 'all', query: true, neutral: [] },
        },
        sessions: { isolation: 'principal', max: 100, idleMs: 300_000, lost: [] },
        questions: {
          timeoutMs: 600_000,
          roots: 'off',
          maxParked: 1000,
          maxParkedPerPrincipal: 32,
          maxParkedAnonymous: 1000,
        },
        tasks: { optional: 'call', ttlMs: 3_600_000, max: 1000, maxPerPrincipal: 32, maxAnonymous: 1000 },
        cache: { ttlMs: new Map(), staleIfErrorMs: 0 },
        timeouts: {
          connectMs: 5000,
          startMs: 30_000,
          probeMs: 3000,
          idleMs: 60_000,
          totalMs: 600_000,
          streamMs: 0,
        },
      },
    ],
    warnings: [expect.stringContaining('no sealKeys')],
  });
});

test('the result is frozen to the leaves', () => {
  const thawed: unknown[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if (!Object.isFrozen(value)) thawed.push(value);
    Object.values(value).forEach(visit);
  };
  visit(parse(withLine('sealKeys: [aaaaaaaaaaaaaaaa]')));
  expect(thawed).toEqual([]);
});

test('all keys of the file reach the configuration', () => {
  const config = parse(`
listen: { host: "::1", port: 0, allowedHosts: [MCP.example.com, "[::1]:80"], allowedOrigins: ["HTTPS://App.example.com:443", "null", "vscode-file://x"], trustedProxies: [10.0.0.0/8, "fd00::1"], keepAliveTimeout: 90s }
publicUrl: https://mcp.example.com/base/
sealKeys: [aaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbb]
keepAlive: 20s
shutdown: { delay: 1s, grace: 2s }
log: { level: debug }
limits: { body: 100, result: 1GiB, rounds: 1, listeners: 2, sessions: 3, exchanges: 4, processes: 5, clientState: 2MiB, cache: 1MiB, replay: 0 }
routes:
  - path: /
    legacySse: true
    backend: { url: "https://b/mcp?key=1", era: 2025-06-18, leg: legacy, transport: http-sse,
               messagesUrl: "https://m/in", headers: { X-Key: a b }, hostHeader: "localhost:3000", authorization: drop,
               forward: { headers: [X-*], query: false, neutral: [Accept-Language] } }
    sessions: { isolation: call, max: 5, idle: 1s, lost: [{ status: 500 }, { status: 200, message: gone }] }
    questions: { timeout: 2s, roots: ask, maxParked: 6, maxParkedPerPrincipal: 7 }
    tasks: { optional: task, ttl: 2m, max: 8, maxPerPrincipal: 9 }
    cache: { tools/list: 30s, resources/read: "off", staleIfError: 1h }
    timeouts: { connect: 3s, start: 6s, probe: 4s, idle: 5s, total: 1h, stream: off }
`);
  expect(config).toEqual({
    listen: {
      host: '::1',
      port: 0,
      allowedHosts: ['mcp.example.com', '[::1]:80'],
      allowedOrigins: ['https://app.example.com', 'null', 'vscode-file://x'],
      trustedProxies: ['10.0.0.0/8', 'fd00::1'],
      keepAliveTimeoutMs: 90_000,
    },
    publicUrl: 'https://mcp.example.com/base',
    sealKeys: ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb'],
    keepAliveMs: 20_000,
    shutdown: { delayMs: 1_000, graceMs: 2_000 },
    log: { level: 'debug' },
    limits: {
      bodyBytes: 100,
      resultBytes: 2 ** 30,
      rounds: 1,
      listeners: 2,
      sessions: 3,
      exchanges: 4,
      processes: 5,
      clientStateBytes: 2 ** 21,
      cacheBytes: 2 ** 20,
      replayBytes: 0,
    },
    routes: [
      {
        path: '/',
        legacySse: true,
        backend: {
          url: 'https://b/mcp?key=1',
          era: '2025-06-18',
          leg: 'legacy',
          transport: 'http-sse',
          messagesUrl: 'https://m/in',
          headers: { 'x-key': 'a b' },
          hostHeader: 'localhost:3000',
          authorization: 'drop',
          forward: { headers: ['x-*'], query: false, neutral: ['accept-language'] },
        },
        sessions: {
          isolation: 'call',
          max: 5,
          idleMs: 1000,
          lost: [{ status: 500 }, { status: 200, message: 'gone' }],
        },
        questions: {
          timeoutMs: 2000,
          roots: 'ask',
          maxParked: 6,
          maxParkedPerPrincipal: 7,
          maxParkedAnonymous: 7,
        },
        tasks: { optional: 'task', ttlMs: 120_000, max: 8, maxPerPrincipal: 9, maxAnonymous: 9 },
        cache: {
          ttlMs: new Map([
            ['tools/list', 30_000],
            ['resources/read', 0],
          ]),
          staleIfErrorMs: 3_600_000,
        },
        timeouts: {
          connectMs: 3000,
          startMs: 6000,
          probeMs: 4000,
          idleMs: 5000,
          totalMs: 3_600_000,
          streamMs: 0,
        },
      },
    ],
    warnings: [],
  });
});

describe('a value from the environment', () => {
  test('is a number where a number is expected', () => {
    const text = withLine('listen: { port: "${PORT}" }\nlimits: { rounds: "${N:-3}", body: "${BODY}" }');
    const config = parse(text, { PORT: '9000', BODY: '2048' });
    expect(config.listen.port).toBe(9000);
    expect(config.limits).toMatchObject({ rounds: 3, bodyBytes: 2048 });
  });

  test('is a boolean where one is expected', () => {
    const text = 'routes: [{ path: /a, legacySse: "${OLD}", backend: { url: "http://b" } }]';
    const legacySse = (OLD: string) => parse(text, { OLD }).routes[0]?.legacySse;
    expect([legacySse('true'), legacySse('false')]).toEqual([true, false]);
    expect(() => legacySse('yes')).toThrow(/legacySse: found "\$\{OLD\}", expected true or false/);
  });

  test('stays text where text is expected', () => {
    const text = withBackend('headers: { X-Key: "${KEY}" }');
    expect(parse(text, { KEY: '12345' }).routes[0]?.backend.headers).toEqual({ 'x-key': '12345' });
  });

  test('is converted, but a quoted number in the file is not', () => {
    expect(() => parse(withLine('listen: { port: "9000" }'))).toThrow(/listen.port: found "9000"/);
  });

  test('does not replace placeholders in keys', () => {
    expect(() => parse(withLine('"${KEY}": 1'), { KEY: 'keepAlive' })).toThrow(/unknown key/);
  });
});

describe('YAML', () => {
  test('anchors, aliases and merge keys work', () => {
    const config = parse(`
routes:
  - &first
    path: /a
    backend: &backend { url: "http://b/mcp", era: legacy }
    timeouts: &waits { idle: 5s, total: 7s }
  - path: /b
    backend: *backend
    timeouts: { <<: *waits, total: 9s }
  - { <<: [*first], path: /c }
`);
    expect(config.routes.map(({ path }) => path)).toEqual(['/a', '/b', '/c']);
    expect(config.routes.map(({ backend }) => backend.era)).toEqual(['legacy', 'legacy', 'legacy']);
    expect(config.routes.map(({ timeouts }) => timeouts.idleMs)).toEqual([5000, 5000, 5000]);
    expect(config.routes.map(({ timeouts }) => timeouts.totalMs)).toEqual([7000, 9000, 7000]);
  });

  test('a byte order mark, CRLF and comments are no problem', () => {
    const text = `\uFEFF# comment\r\n${withLine('keepAlive: 1s # more').replaceAll('\n', '\r\n')}`;
    expect(parse(text).keepAliveMs).toBe(1000);
  });

  test('JSON is YAML', () => {
    expect(parse('{"routes":[{"path":"/a","backend":{"url":"http://b"}}]}').routes).toHaveLength(1);
  });

  test('off is a word and not false', () => {
    const text = 'routes: [{ path: /a, backend: { url: "http://b" }, questions: { roots: off } }]';
    expect(parse(text).routes[0]?.questions.roots).toBe('off');
  });
});

describe('headers that the gateway sets', () => {
  const owned = [
    'Accept',
    'Accept-Encoding',
    'Connection',
    'Content-Type',
    'Content-Length',
    'Host',
    'Last-Event-ID',
    'Mcp-Method',
    'Mcp-Name',
    'Mcp-Param-Region',
    'MCP-Protocol-Version',
    'Mcp-Session-Id',
    'Transfer-Encoding',
  ];

  test.each(owned)('%s is not sent, with a warning and its position', (name) => {
    const config = parse(withBackend(`headers: { X-A: a, ${name}: b }`));
    expect(config.routes[0]?.backend.headers).toEqual({ 'x-a': 'a' });
    expect(config.warnings[1]).toMatch(
      new RegExp(`^gateway.yaml:3:58: routes\\[0\\].backend.headers.${name}: not sent`),
    );
  });

  test('the warning about Host names backend.hostHeader', () => {
    expect(parse(withBackend('headers: { host: b }')).warnings[1]).toContain('use backend.hostHeader');
  });
});

describe('a file', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'eragate-load-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  test('may read secrets from files beside it', () => {
    writeFileSync(join(directory, 'key'), `${'k'.repeat(44)}\n`);
    writeFileSync(join(directory, 'gateway.yaml'), withLine('sealKeys: ["${file:./key}"]'));
    expect(loadConfig(join(directory, 'gateway.yaml'), {}).sealKeys).toEqual(['k'.repeat(44)]);
  });

  test('that does not exist is a problem', () => {
    const file = join(directory, 'gone.yaml');
    expect(() => loadConfig(file)).toThrow(ConfigError);
    expect(() => loadConfig(file)).toThrow(
      `${file}:1:1: found a file that cannot be read (ENOENT), expected a readable YAML file`,
    );
  });

  test('that is not UTF-8 is a problem', () => {
    const file = join(directory, 'latin1.yaml');
    writeFileSync(file, Buffer.from('# caf\xe9\n', 'latin1'));
    expect(() => loadConfig(file)).toThrow(/not UTF-8/);
  });
});
