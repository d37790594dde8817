// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of the gateway file look the same
import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/index.js';
import { problemsOf, withBackend, withLine } from './support.js';

/** A file whose only route's backend is `members` and nothing else. */
const withOnly = (members: string) => `routes:\n  - path: /mcp\n    backend: { ${members} }\n`;
const commandOf = (members: string, env = {}) =>
  parseConfig(withOnly(members), 'gateway.yaml', env).routes[0]?.backend.command;

test('a command alone gets every default', () => {
  expect(commandOf('command: npx')).toEqual({ command: 'npx', args: [], env: {}, process: 'per-session' });
});

test('a command may have args, env, cwd and process', () => {
  const members = 'command: uvx, args: [a, "1"], env: { KEY: "${KEY}" }, cwd: /srv, process: shared';
  expect(commandOf(members, { KEY: 'hunter2' })).toEqual({
    command: 'uvx',
    args: ['a', '1'],
    env: { KEY: 'hunter2' },
    cwd: '/srv',
    process: 'shared',
  });
});

test('credentials of callers are dropped for a server on stdio', () => {
  const [route] = parseConfig(withOnly('command: npx'), 'gateway.yaml', {}).routes;
  expect(route?.backend.authorization).toBe('drop');
});

test.each([
  ['', true],
  ['listen: { host: "::" }', true],
  ['listen: { host: 192.168.1.5 }', true],
  ['listen: { host: 127.0.0.1 }', false],
  ['listen: { host: 127.1.2.3 }', false],
  ['listen: { host: "::1" }', false],
  ['listen: { host: localhost }', false],
])('with "%s" there is a warning that any client can use a server that is started: %s', (listen, warned) => {
  const warningsOf = (members: string) =>
    parseConfig(`${listen}\n${withOnly(members)}`, 'gateway.yaml', {}).warnings.filter((warning) =>
      warning.includes('any client'),
    );
  expect(warningsOf('url: "http://a"')).toEqual([]);
  expect(warningsOf('command: npx')).toEqual(
    warned
      ? [expect.stringMatching(/^gateway.yaml:4:16: routes\[0\].backend.command: any client .*listen.host/)]
      : [],
  );
});

test('a backend has either a url or a command', () => {
  expect(problemsOf(withOnly('era: auto'))).toEqual([
    expect.stringMatching(
      /^gateway.yaml:3:5: routes\[0\].backend.url: found nothing, expected an http.*command/,
    ),
  ]);
  expect(problemsOf(withBackend('command: npx'))).toEqual([
    'gateway.yaml:3:39: routes[0].backend.command: found url and command, expected one of them',
  ]);
});

test.each(['args: [a]', 'env: { A: b }', 'cwd: /', 'process: shared'])('%s needs a command', (member) => {
  expect(problemsOf(withBackend(member))).toEqual([expect.stringContaining('beside url')]);
});

test.each(['headers: { A: b }', 'hostHeader: b', 'authorization: drop', 'transport: streamable-http'])(
  '%s is not for a command',
  (member) => {
    expect(problemsOf(withOnly(`command: npx, ${member}`))).toEqual([
      expect.stringContaining('beside command'),
    ]);
  },
);

test.each([
  ['command: ""', 'backend.command: found "", expected a program'],
  ['command: 1', 'backend.command: found 1, expected a program'],
  [
    'command: a, args: b',
    'backend.args: found a string that is not shown here, expected a list of arguments',
  ],
  [
    'command: a, args: [3000]',
    'backend.args[0]: found a number that is not shown here, expected text (in quotes',
  ],
  [
    'command: a, env: { A: 1 }',
    'backend.env.A: found a number that is not shown here, expected text (in quotes',
  ],
  ['command: a, env: { "A=B": c }', 'found the name "A=B", expected a name without ='],
  ['command: a, process: both', 'backend.process: found "both", expected one of per-session, shared'],
])('%s is reported', (members, problem) => {
  expect(problemsOf(withOnly(members))).toEqual([expect.stringContaining(problem)]);
});

test('problems never show what may be a secret', () => {
  const members = 'command: a, args: [{ x: hunter2 }], env: { A: [hunter2], "hunter2=": x }';
  expect(problemsOf(withOnly('command: a, args: hunter2')).join()).not.toContain('hunter2');
  expect(
    problemsOf(withOnly(members))
      .filter((line) => !line.includes('the name'))
      .join(),
  ).not.toContain('hunter2');
});

test('the number of processes is limited, and can be set', () => {
  const limits = (text: string) => parseConfig(text, 'gateway.yaml', {}).limits.processes;
  expect(limits(withBackend('era: auto'))).toBe(100);
  expect(limits(withLine('limits: { processes: 3 }'))).toBe(3);
  expect(problemsOf(withLine('limits: { processes: 0 }'))).toHaveLength(1);
});
