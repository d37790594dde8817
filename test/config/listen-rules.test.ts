import { describe, expect, test } from 'vitest';
import { ConfigError, parseConfig } from '../../src/config/index.js';

/** The problems with a file, as `line:column message`. */
function problemsOf(text: string): string[] {
  try {
    parseConfig(text, 'gateway.yaml', {});
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
  }
}

const ROUTE = '\nroutes: [{ path: /a, backend: { url: "http://b" } }]\n';

describe('the address to listen on', () => {
  test.each(['0.0.0.0', '127.0.0.1', '::', '::1', 'fe80::1%eth0', 'localhost', 'gateway-1', 'a.example.com'])(
    'may be %s',
    (host) => {
      expect(problemsOf(`listen: { host: "${host}" }${ROUTE}`)).toEqual([]);
    },
  );

  test.each(['[::]', '127.0.0.1:80', 'http://0.0.0.0', '*', 'a b', 'localhost/'])('cannot be %s', (host) => {
    expect(problemsOf(`listen: { host: "${host}" }${ROUTE}`)).toEqual([
      expect.stringMatching(
        /^1:17 listen.host: found ".*", expected an address or a host name .* without brackets/,
      ),
    ]);
  });
});

describe('the program to start', () => {
  const withCommand = (members: string) => `routes:\n  - path: /a\n    backend: { ${members} }\n`;

  test.each(['npx', '/opt/my server/bin', './my server', 'C:\\\\Program Files\\\\x.exe'])(
    'may be %s',
    (command) => {
      expect(problemsOf(withCommand(`command: "${command}"`))).toEqual([]);
    },
  );

  test('is not a line for a shell', () => {
    expect(problemsOf(withCommand('command: npx -y some-server'))).toEqual([
      '3:25 routes[0].backend.command: found "npx -y some-server", expected a program alone; its arguments go into args',
    ]);
  });

  test.each(['args: ["a\\0b"]', 'env: { A: "a\\0b" }'])(
    'gets no NUL in arguments and variables: %s',
    (member) => {
      const problems = problemsOf(withCommand(`command: npx, ${member}`));
      expect(problems).toEqual([
        expect.stringContaining(
          'not shown here, expected text (in quotes if it looks like a number), without NUL',
        ),
      ]);
    },
  );
});

describe('a route that leads to itself', () => {
  const file = (url: string, port = 8080, host = '0.0.0.0') =>
    `listen: { port: ${port}, host: "${host}" }\nroutes:\n  - path: /mcp\n    backend: { url: "${url}" }\n`;

  test.each(['http://127.0.0.1:8080/mcp', 'http://localhost:8080/mcp/', 'http://127.1.2.3:8080/mcp?a=b'])(
    'is rejected: %s',
    (url) => {
      expect(problemsOf(file(url))).toEqual([
        expect.stringMatching(
          /^4:21 routes\[0\].backend.url: .* expected another server: this is the route itself/,
        ),
      ]);
    },
  );

  test.each([
    'http://127.0.0.1:8081/mcp',
    'http://127.0.0.1:8080/other',
    'http://host:8080/mcp',
    'https://127.0.0.1:8080/mcp',
  ])('is not %s', (url) => expect(problemsOf(file(url))).toEqual([]));

  test.each([
    ['::', 'http://[::1]:8080/mcp', 1],
    ['127.0.0.1', 'http://localhost:8080/mcp', 1],
    ['127.0.0.1', 'http://[::1]:8080/mcp', 0],
    ['127.0.0.1', 'http://127.0.0.2:8080/mcp', 0],
    ['192.168.1.5', 'http://127.0.0.1:8080/mcp', 0],
  ])('is another server where the gateway listens on another address: %s, %s', (host, url, problems) => {
    expect(problemsOf(file(url, 8080, host))).toHaveLength(problems);
  });

  test('is rejected on the default port as well', () => {
    expect(problemsOf(file('http://localhost/mcp', 80))).toHaveLength(1);
  });
});
