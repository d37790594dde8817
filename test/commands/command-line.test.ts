import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runCommandLine } from '../../src/commands/command-line.js';
import { example, testContext } from './support.js';

test.each([['--help'], ['-h'], ['help'], ['check', '--help'], ['serve', '-h']])(
  '%s %s prints the usage',
  async (...args) => {
    const { context, printed } = testContext();
    expect(await runCommandLine(args, context)).toBe(0);
    expect(printed.stdout).toMatch(/^eragate: .*\n\nusage:\n {2}eragate \[serve\] --config FILE/);
  },
);

test('--version prints the version of the package', async () => {
  const { context, printed } = testContext();
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  expect(await runCommandLine(['--version'], context)).toBe(0);
  expect(printed.stdout).toBe(`${version}\n`);
});

test.each([
  [[], 'no gateway file given'],
  [['start'], 'unknown command "start", expected one of serve, check, probe'],
  [['serve'], 'serve needs one gateway file'],
  [['--config'], '--config'],
  [['--confg', 'x'], "Unknown option '--confg'"],
  [['serve', 'a.yaml', 'b.yaml'], 'serve needs one gateway file'],
  [['check'], 'check needs one gateway file'],
  [['check', 'a', 'b'], 'check needs one gateway file'],
  [['check', 'a', '--config', 'b'], 'check needs one gateway file'],
  [['probe'], 'probe needs one URL'],
  [['probe', 'example.com'], 'probe needs an http or https URL'],
  [['probe', 'http://b', '--timeout', '5'], '--timeout is a duration'],
])('%j is a wrong command line: exit code 2, and a hint', async (args, message) => {
  const { context, printed } = testContext();
  expect(await runCommandLine(args, context)).toBe(2);
  expect(printed.stderr).toContain(message);
  expect(printed.stderr).toMatch(/\nTry: eragate --help\n$/);
  expect(printed.stdout).toBe('');
});

test('an invalid header is a wrong command line, and is not in the message', async () => {
  const { context, printed } = testContext();
  expect(await runCommandLine(['probe', 'http://b', '--header', 'Bearer hunter2'], context)).toBe(2);
  expect(printed.stderr).not.toContain('hunter2');
});

test('an error of a command is one line and exit code 1', async () => {
  const { context, printed } = testContext();
  expect(await runCommandLine(['--config', example('minimal.yaml')], context)).toBe(1);
  expect(printed.stderr).toBe('eragate: no gateway in this test\n');
});

test('serve FILE and serve --config FILE are the same', async () => {
  for (const args of [
    ['serve', '/no/such.yaml'],
    ['serve', '--config', '/no/such.yaml'],
  ]) {
    const { context, printed } = testContext();
    expect(await runCommandLine(args, context)).toBe(1);
    expect(printed.stderr).toContain('/no/such.yaml');
  }
});
