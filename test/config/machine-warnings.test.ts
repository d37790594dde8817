import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config/index.js';
import { problemsOf } from './support.js';

const warningsOf = (text: string, env: Record<string, string> = {}): string[] =>
  parseConfig(text, 'g.yaml', { PATH: process.env['PATH'] ?? '', ...env }).warnings.filter(
    (warning) => !/no sealKeys|any client that can connect/.test(warning),
  );
const backend = (members: string, rest = '') =>
  `${rest}\nroutes:\n  - path: /mcp\n    backend: { ${members} }\n`;

describe('check warns of', () => {
  test.each([
    ['a program that is not in PATH', 'command: no-such-program', /no such program/],
    ['a program that is not at its path', 'command: /no/such/program', /no such program/],
    ['a program that is a folder', `command: "${tmpdir()}"`, /no such program/],
    ['a folder that is not there', 'command: node, cwd: /no/such/folder', /cwd: there is no such folder/],
    ['a program of the home folder', 'command: ~/bin/server', /command: no shell replaces ~/],
    ['a folder of the home folder', 'command: node, cwd: ~/x', /cwd: no shell replaces ~/],
    ['an argument of the home folder', 'command: node, args: ["~/x.js"]', /args\[0\]: no shell replaces ~/],
    [
      'a variable without braces in an argument',
      'command: node, args: ["--key=$API_KEY"]',
      /write \$\{API_KEY\}/,
    ],
    ['one in a header', 'url: "http://b", headers: { Authorization: Bearer $TOKEN }', /write \$\{TOKEN\}/],
    ['one in the URL', 'url: "http://b/$TENANT/mcp"', /write \$\{TENANT\}/],
    ['one in the environment', 'command: node, env: { KEY: $KEY_OF_A }', /write \$\{KEY_OF_A\}/],
  ])('%s', (_what, members, warning) => {
    const warnings = warningsOf(backend(members));
    expect(warnings).toEqual([expect.stringMatching(warning)]);
    expect(warnings[0]).not.toContain('--key');
  });

  test.each(['/mcp', '/base/mcp', '/mcp/'])('a public URL that ends with the path of a route: %s', (path) => {
    const text = backend('url: "http://b"', `publicUrl: "https://a.example${path}"`);
    expect(warningsOf(text)).toEqual([
      expect.stringMatching(/publicUrl: the path of a route is added.*\/mcp\/mcp/),
    ]);
  });

  test.each([
    ['https://b.example/mcp', { HTTPS_PROXY: 'http://p:1' }],
    ['https://b.example/mcp', { https_proxy: 'http://p:1', NO_PROXY: 'c.example' }],
    ['http://b.example/mcp', { HTTP_PROXY: 'http://p:1' }],
  ])('a proxy variable that is not used: %s %j', (url, env) => {
    expect(warningsOf(backend(`url: "${url}"`), env as Record<string, string>)).toEqual([
      expect.stringMatching(/HTTPS?_PROXY is not used/),
    ]);
  });
});

describe('check does not warn of', () => {
  test.each([
    ['a program of PATH', 'command: node'],
    ['a program at its path', `command: "${process.execPath}", cwd: "${tmpdir()}"`],
    ['a dollar sign that is no variable', 'url: "http://b", headers: { X-A: "$5 $$x $a" }'],
  ])('%s', (_what, members) => {
    expect(warningsOf(backend(members))).toEqual([]);
  });

  test('a secret that looks like a variable, when a placeholder brings it', () => {
    const text = backend(`url: "http://b", headers: { X-A: "\${KEY}" }`);
    expect(warningsOf(text, { KEY: 'a$SECRET' })).toEqual([]);
  });

  test.each(['b.example', '.example', '*', 'x, b.example:443', 'example'])(
    'a proxy that NO_PROXY excludes: %s',
    (list) => {
      const env = { HTTPS_PROXY: 'http://p:1', NO_PROXY: list };
      expect(warningsOf(backend('url: "https://b.example:443/mcp"'), env)).toEqual(
        list.includes(':443') ? [expect.stringContaining('not used')] : [],
      );
    },
  );
});

test.each(['https://*', 'https://a.*.example.com', 'https://*example.com', 'https://*.*.com'])(
  'an origin with a * that would match nothing is rejected: %s',
  (origin) => {
    expect(problemsOf(backend('url: "http://b"', `listen: { allowedOrigins: ["${origin}"] }`))).toEqual([
      expect.stringMatching(/\* may stand for the first labels alone/),
    ]);
  },
);

test.each(['INFO', 'Info', 'WARN'])('the log level %s is understood', (level) => {
  const config = parseConfig(backend('url: "http://b"', `log: { level: ${level} }`), 'g.yaml', {});
  expect(config.log.level).toBe(level.toLowerCase());
});

test('keys that begin with x- at the top level hold anchors', () => {
  const text =
    'x-times: &times { total: 1m }\nroutes: [{ path: /a, backend: { url: "http://b" }, timeouts: *times }]\n';
  expect(parseConfig(text, 'g.yaml', {}).routes[0]?.timeouts.totalMs).toBe(60_000);
});

test('a placeholder between braces without quotes is one error, which says so', () => {
  expect(problemsOf(`listen: { host: a, port: \${PORT:-8080} }\nroutes: []\n`)).toEqual([
    `gateway.yaml:1:26: found a placeholder without quotes between braces or brackets, expected it in quotes: "\${NAME}"`,
  ]);
});

test('a second document is named', () => {
  expect(problemsOf('a: 1\n---\nb: 1\n')).toContainEqual(expect.stringMatching(/found a second document/));
});
