// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of the gateway file look the same
import { describe, expect, test } from 'vitest';
import { ConfigError, parseConfig } from '../../src/config/index.js';
import { problemsOf, withBackend, withLine } from './support.js';

test('all problems are reported together, in the order of the file, each with line and column', () => {
  const text = `listen: { host: 1, prot: 80 }
keepAlive: 15
routes:
  - path: orders
    backend:
      url: ftp://x
      era: moden
  - backend: { url: "http://b" }
    timeouts: { idle: 600h }
    extra: 1
`;
  expect(problemsOf(text)).toEqual([
    'gateway.yaml:1:17: listen.host: found 1, expected an address or host name to listen on',
    'gateway.yaml:1:20: listen.prot: found the unknown key "prot", expected one of host, port, allowedHosts, ' +
      'allowedOrigins, trustedProxies, keepAliveTimeout (did you mean port?)',
    'gateway.yaml:2:12: keepAlive: found 15, expected a duration such as 500ms, 60s, 10m or 1h30m',
    'gateway.yaml:4:11: routes[0].path: found "orders", expected a path that begins with a slash, such as /orders ' +
      '(letters, digits, and . _ ~ - between slashes)',
    'gateway.yaml:6:12: routes[0].backend.url: found "ftp://x", expected an http or https URL such as ' +
      'http://orders:3000/mcp',
    'gateway.yaml:7:12: routes[0].backend.era: found "moden", expected one of auto, legacy, modern, 2024-11-05, ' +
      '2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28',
    expect.stringMatching(/^gateway.yaml:8:5: routes\[1\].path: found nothing, expected a path/),
    'gateway.yaml:9:23: routes[1].timeouts.idle: found "600h", expected a duration of at most 24 days',
    expect.stringMatching(/^gateway.yaml:10:5: routes\[1\].extra: found the unknown key "extra"/),
  ]);
});

test('a problem has its parts as data', () => {
  try {
    parseConfig(withBackend('era: moden'), 'some/gateway.yaml', {});
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).problems).toEqual([
      {
        file: 'some/gateway.yaml',
        line: 3,
        column: 44,
        path: 'routes[0].backend.era',
        found: '"moden"',
        expected: expect.stringMatching(/^one of auto, legacy, modern, 2024/),
        message: expect.stringMatching(/^routes\[0\].backend.era: found "moden", expected one of auto/),
      },
    ]);
  }
});

describe('a file that is not a gateway file', () => {
  test.each([
    ['', 'found an empty file, expected a mapping with routes'],
    ['# only a comment\n', 'found an empty file'],
    ['[]', 'found an empty list, expected an Eragate gateway file'],
    ['hello', 'found "hello", expected an Eragate gateway file'],
    ['{}', 'routes: found nothing, expected a list with at least one route'],
    ['routes: []', 'routes: found an empty list, expected a list with at least one route'],
    ['routes:', 'routes: found an empty value, expected a list'],
    ['routes: { path: /a }', 'routes: found a mapping, expected a list'],
    ['routes: [/a]', 'routes[0]: found "/a", expected a route: a mapping with path and backend'],
  ])('%j is a problem', (text, message) => {
    expect(problemsOf(text)).toEqual([expect.stringContaining(message)]);
  });
});

describe('YAML', () => {
  test('a syntax error has its position and no further problems', () => {
    expect(problemsOf('listen: { port: 1\nroutes: x\n')[0]).toMatch(
      /^gateway.yaml:2:\d+: found text that is not YAML/,
    );
  });

  test('a syntax error does not show the text, which may be a secret', () => {
    for (const text of [
      'sealKeys: ["hunter2hunter2\n',
      'a: b: hunter2\n',
      '"x" hunter2: 1\n',
      '@hunter2',
      '- a\nhunter2',
    ]) {
      expect(problemsOf(text).join()).toMatch(/not YAML/);
      expect(problemsOf(text).join()).not.toContain('hunter2');
    }
  });

  test('a duplicate key is named, and the rest of the file is still checked', () => {
    expect(problemsOf(withLine('keepAlive: 1s\nlog: { level: loud }\nkeepAlive: 2s'))).toEqual([
      expect.stringMatching(/^gateway.yaml:2:15: log.level: found "loud"/),
      'gateway.yaml:3:1: found the key keepAlive a second time, expected each key once in a mapping',
    ]);
  });

  test('several documents, unknown tags and dangling aliases are problems', () => {
    expect(problemsOf(`${withLine('')}---\n{}\n`)).toHaveLength(1);
    expect(problemsOf(withLine('keepAlive: !secret 1s'))).toHaveLength(1);
    expect(problemsOf(withLine('keepAlive: *gone'))).toHaveLength(1);
  });

  test('aliases that multiply or contain themselves, and endless nesting, are problems', () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let i = 1; i < 10; i++)
      lines.push(
        `a${i}: &a${i} [${Array(10)
          .fill(`*a${i - 1}`)
          .join(', ')}]`,
      );
    expect(problemsOf(lines.join('\n')).join('\n')).toContain('more than a gateway file can hold');
    for (const line of ['limits: &a { body: *a }', 'limits: &a { <<: *a }', 'sealKeys: &a [*a]']) {
      expect(problemsOf(withLine(line))).toEqual([
        expect.stringContaining(
          'found the alias *a inside the value of its anchor, expected an alias of an earlier &a',
        ),
      ]);
    }
    const deep = problemsOf(withLine(`log: ${'['.repeat(40)}${']'.repeat(40)}`));
    expect(deep.join('\n')).toContain('more than a gateway file can hold');
  });

  test('__proto__ and constructor are unknown keys', () => {
    expect(problemsOf(withLine('__proto__: { keepAlive: 1s }'))).toEqual([
      expect.stringContaining('unknown key'),
    ]);
    expect(problemsOf(withLine('constructor: 1'))).toEqual([expect.stringContaining('unknown key')]);
  });
});

describe('an unknown key', () => {
  test.each([
    [withLine('seal_keys: [x]'), '1:1: seal_keys: ', 'did you mean sealKeys?'],
    [withLine('limit: {}'), '1:1: limit: ', 'did you mean limits?'],
    [withLine('timeouts: {}'), '1:1: timeouts: ', 'timeouts is a key of routes[]'],
    [withLine('port: 80'), '1:1: port: ', 'port is a key of listen'],
    [withLine('listen: { level: info }'), '1:11: listen.level: ', 'level is a key of log'],
    [withBackend('host_header: x'), '3:39: routes[0].backend.host_header: ', 'did you mean hostHeader?'],
  ])('in %j is named, with a suggestion', (text, place, hint) => {
    expect(problemsOf(text)).toEqual([expect.stringContaining(`gateway.yaml:${place}found the unknown key`)]);
    expect(problemsOf(text)[0]).toContain(hint);
  });

  test('without a similar key has no suggestion', () => {
    expect(problemsOf(withLine('zzz: 1'))[0]).toMatch(/expected one of listen, [\w, ]+, routes$/);
  });
});

test('timeouts.stream is a duration, where clients can resume a stream', () => {
  const held = (stream: string, replay = '1MiB') =>
    problemsOf(
      withLine(`limits: { replay: ${replay} }`).replace(
        '/mcp" }',
        `/mcp" }, timeouts: { stream: ${stream} }`,
      ),
    );
  for (const stream of ['50s', 'off', '"off"', '1ms']) expect(held(stream)).toEqual([]);
  expect(held('off', '0')).toEqual([]);
  expect(held('50s', '0')).toEqual([
    'gateway.yaml:2:80: routes[0].timeouts.stream: found "50s", expected off, since limits.replay is 0 and clients ' +
      'cannot resume a stream',
  ]);
  for (const stream of ['0', '0s', '50', 'on', '600h', '-1s', 'true'])
    expect(held(stream)).toEqual([expect.stringMatching(/timeouts.stream: found .*, expected a duration/)]);
});

test.each([
  [withLine('limits: { replay: 9GiB }'), 'limits.replay: found "9GiB", expected a size below 4GiB'],
  [withLine('limits: { replay: none }'), 'limits.replay: found "none", expected a size such as 64KiB'],
  [
    'routes: [{ path: /a, backend: { url: "http://b" }, cache: { tools/list: 999h } }]',
    'cache["tools/list"]: found "999h", expected a duration of at most 24 days',
  ],
  [
    'routes: [{ path: /a, backend: { url: "http://b" }, cache: { staleIfError: never } }]',
    'cache.staleIfError: found "never", expected a duration such as 500ms, 60s, 10m or 1h30m, or off',
  ],
])('in %j a value that may also be none is checked', (text, problem) => {
  expect(problemsOf(text)).toEqual([expect.stringContaining(problem)]);
});

test.each([
  ['stdio', 'give command and args in place of url'],
  ['sse', 'did you mean http-sse?'],
])('the transport %s is refused with a hint', (transport, hint) => {
  const [problem] = problemsOf(withBackend(`transport: ${transport}`));
  expect(problem).toMatch(/expected one of auto, streamable-http, http-sse \(/);
  expect(problem).toContain(hint);
});

test('a server on HTTP+SSE is of the legacy era', () => {
  expect(problemsOf(withBackend('transport: http-sse, era: 2024-11-05, leg: legacy'))).toEqual([]);
  for (const key of ['era: modern', 'era: 2026-07-28', 'leg: modern']) {
    expect(problemsOf(withBackend(`transport: http-sse, ${key}`))[0]).toContain('expected auto or legacy');
  }
});

test.each(['sse', 'messages'])('the paths for clients on HTTP+SSE are free: %s', (place) => {
  const backend = 'backend: { url: "http://b/mcp" }';
  const routes = (sse: boolean) =>
    `routes: [{ path: /a/, legacySse: ${sse}, ${backend} }, { path: /a/${place}, ${backend} }]`;
  expect(problemsOf(routes(false))).toEqual([]);
  expect(problemsOf(routes(true))[0]).toContain('routes[1].path has the path that is needed for it');
});

test('messagesUrl is for HTTP+SSE only', () => {
  const messagesUrl = 'messagesUrl: "http://b/messages?x=1"';
  expect(problemsOf(withBackend(messagesUrl))).toEqual([]);
  expect(problemsOf(withBackend(`transport: http-sse, ${messagesUrl}`))).toEqual([]);
  expect(problemsOf(withBackend(`transport: streamable-http, ${messagesUrl}`))[0]).toContain(
    'http-sse or auto',
  );
  expect(problemsOf(withBackend('messagesUrl: /messages'))[0]).toContain('an http or https URL');
});

describe('URLs', () => {
  test.each([
    ['ftp://b/mcp', 'an http or https URL'],
    ['//b/mcp', 'an http or https URL'],
    ['b:3000/mcp', 'an http or https URL'],
    ['http:b', 'an http or https URL'],
    ['http://', 'an http or https URL'],
    ['http://b:99999/', 'an http or https URL'],
    ['""', 'an http or https URL'],
    ['http://b/mcp#x', 'without a fragment'],
    ['http://user:hunter2@b/mcp', 'without credentials (send them with backend.headers: Authorization)'],
    ['http://hunter2@b/mcp', 'without credentials'],
    ['ftp://user:hunter2@b/mcp?key=hunter2', 'an http or https URL'],
  ])('the backend %s is refused', (url, expected) => {
    const problems = problemsOf(`routes:\n  - path: /a\n    backend:\n      url: ${url}\n`);
    expect(problems).toEqual([expect.stringContaining(expected)]);
    expect(problems[0]).toMatch(/^gateway.yaml:4:12: routes\[0\].backend.url: /);
    expect(problems.join()).not.toContain('hunter2');
  });

  test('publicUrl is a URL without a query', () => {
    expect(problemsOf(withLine('publicUrl: mcp.example.com'))[0]).toContain(
      '1:12: publicUrl: found "mcp.example.com"',
    );
    expect(problemsOf(withLine('publicUrl: https://a/?b=1'))[0]).toContain('without a query');
  });
});

describe('paths', () => {
  const routes = (...paths: string[]) =>
    `routes:\n${paths.map((path) => `  - { path: ${path}, backend: { url: "http://b" } }\n`).join('')}`;

  test.each([
    'orders',
    '"/a b"',
    '/a//b',
    '/:id',
    '/*',
    '"/a?b"',
    '"/a#b"',
    '/a%2Fb',
    '""',
    'http://x/a',
    '/../a',
    '/a/./b',
  ])('%s is refused', (path) => {
    expect(problemsOf(routes(path))).toEqual([expect.stringContaining('2:13: routes[0].path: found')]);
  });

  test.each(['/healthz', '/healthz/', '/.well-known', '/.well-known/x'])('%s is reserved', (path) => {
    expect(problemsOf(routes(path))[0]).toContain('expected another path');
  });

  test.each([
    ['/a', '/a'],
    ['/a', '/a/'],
    ['/a/', '/a'],
  ])('%s and %s cannot be told apart', (one, other) => {
    expect(problemsOf(routes(one, '/c', other))).toEqual([
      `gateway.yaml:4:13: routes[2].path: found "${other}", expected a path of its own for each route; ` +
        'routes[0].path has this one already',
    ]);
  });

  test('that contain each other, or differ in case, can', () => {
    expect(problemsOf(routes('/', '/a', '/a/b', '/A', '/healthz/mcp', '/a.b~c_d-e'))).toEqual([]);
  });
});

describe('headers', () => {
  test.each(['"bad name"', '"a:b"', '""', '"a\\r\\nb"', 'ä'])('the name %s is refused', (name) => {
    expect(problemsOf(withBackend(`headers: { ${name}: x }`))).toEqual([
      expect.stringMatching(/^gateway.yaml:3:50: routes\[0\].backend.headers\[".*"\]: found the name/),
    ]);
  });

  test.each(['"a\\r\\nb"', '"a\\0"', '1', 'true', '"\u2603"', '', '[a]'])(
    'the value %s is refused',
    (value) => {
      expect(problemsOf(withBackend(`headers: { X-A: ${value} }`))).toEqual([
        expect.stringContaining('expected text without line breaks'),
      ]);
    },
  );

  test('one name in two spellings is refused', () => {
    expect(problemsOf(withBackend('headers: { X-A: a, x-a: b }'))).toEqual([
      'gateway.yaml:3:58: routes[0].backend.headers.x-a: found the header x-a a second time, expected each header ' +
        'once; X-A is the same name',
    ]);
  });
});

describe('values', () => {
  test.each([
    ['listen: { port: 65536 }', 'listen.port: found 65536, expected a port number from 0 to 65535'],
    ['listen: { port: 80.5 }', 'listen.port: found 80.5'],
    ['listen: { host: "" }', 'listen.host: found ""'],
    ['listen: { allowedHosts: "a" }', 'listen.allowedHosts: found "a", expected a list of host names'],
    ['listen: { allowedHosts: ["http://a"] }', 'listen.allowedHosts[0]: found "http://a"'],
    ['listen: { allowedOrigins: ["https://a/"] }', 'listen.allowedOrigins[0]: found "https://a/"'],
    ['listen: { allowedOrigins: ["*"] }', 'listen.allowedOrigins[0]: found "*"'],
    ['listen: { trustedProxies: "10.0.0.1" }', 'listen.trustedProxies: found "10.0.0.1"'],
    ['listen: { trustedProxies: [proxy] }', 'listen.trustedProxies[0]: found "proxy", expected an address'],
    ['listen: { trustedProxies: [10.0.0.300] }', 'listen.trustedProxies[0]: found "10.0.0.300"'],
    ['listen: { trustedProxies: [10.0.0.0/33] }', 'listen.trustedProxies[0]: found "10.0.0.0/33"'],
    ['listen: { trustedProxies: ["::1/129"] }', 'listen.trustedProxies[0]: found "::1/129"'],
    ['log: { level: loud }', 'log.level: found "loud", expected one of fatal, error, warn'],
    ['log: info', 'log: found "info", expected a mapping of log settings'],
    ['limits: { body: 4XB }', 'limits.body: found "4XB", expected a size such as 64KiB'],
    ['limits: { body: 0 }', 'limits.body: found 0'],
    ['limits: { body: 9GiB }', 'limits.body: found "9GiB", expected a size below 4GiB'],
    ['limits: { rounds: 0 }', 'limits.rounds: found 0, expected a whole number from 1'],
    ['limits: { rounds: "3" }', 'limits.rounds: found "3"'],
    ['keepAlive: 0s', 'keepAlive: found "0s"'],
    ['keepAlive: 2020-01-01', 'keepAlive: found "2020-01-01"'],
  ])('%s is refused', (line, message) => {
    expect(problemsOf(withLine(line))).toEqual([expect.stringContaining(message)]);
  });

  test.each([
    ['legacy', 'modern'],
    ['2025-11-25', 'modern'],
    ['2026-07-28', 'legacy'],
    ['modern', 'legacy'],
  ])('era %s has no leg %s', (era, leg) => {
    expect(problemsOf(withBackend(`era: ${era}, leg: ${leg}`))).toEqual([
      expect.stringMatching(
        new RegExp(`backend.leg: found "${leg}", expected auto or .*, since backend.era is ${era}`),
      ),
    ]);
  });
});

describe('secrets', () => {
  const env = { SECRET: 'hunter2', URL: 'http://user:hunter2@b', PORT: '70000' };

  test('of placeholders are shown as they are written in the file', () => {
    const text = `
listen: { port: "\${PORT}", host: "\${HOST:-}" }
log: { level: "\${SECRET}" }
sealKeys: ["\${SECRET}"]
routes:
  - path: "\${SECRET}"
    backend:
      url: \${URL}
      headers: { Authorization: "Bearer hunter2\\n\${SECRET}" }
`;
    const problems = problemsOf(text, env);
    expect(problems.map((line) => /found (.*), expected/.exec(line)?.[1])).toEqual([
      '"${PORT}"',
      '"${HOST:-}"',
      '"${SECRET}"',
      '${SECRET}',
      '"${SECRET}"',
      '"${URL}"',
      '${SECRET}',
    ]);
    expect(problems.join()).not.toContain('hunter2');
  });

  test.each([
    withLine('sealKeys: hunter2'),
    withLine('sealKeys: [hunter2]'),
    withLine('sealKeys: ["${S:-hunter2}"]'),
    withBackend('headers: hunter2'),
    withBackend('headers: { A: "hunter2\\n" }'),
    withBackend('headers: { A: "${S:-hunter2\\n}" }'),
    withBackend('headers: { A: "${S-hunter2}" }'),
    withBackend('hunter: hunter2'),
  ])('in the file are not shown: %j', (text) => {
    expect(problemsOf(text)).toHaveLength(1);
    expect(problemsOf(text).join()).not.toContain('hunter2');
  });
});

test('a placeholder that cannot be replaced is one problem, at its position', () => {
  expect(problemsOf(withBackend('headers: { Authorization: "Bearer ${ORDERS_TOKEN}" }'))).toEqual([
    'gateway.yaml:3:73: routes[0].backend.headers.Authorization: found ${ORDERS_TOKEN}, which is not in the ' +
      'environment, expected the environment variable ORDERS_TOKEN to be set, or a default as in ' +
      '${ORDERS_TOKEN:-default}',
  ]);
  expect(problemsOf(withLine('listen: { port: "${PORT}", host: "${file:/nowhere/at/all}" }'))).toHaveLength(
    2,
  );
});
