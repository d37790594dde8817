import { pino } from 'pino';
import { expect, test } from 'vitest';
import { renderedLines } from '../../src/telemetry/rendered.js';

const TIME = /"time":\d+/;

function writtenBy(options: pino.LoggerOptions, write: (log: pino.Logger) => void): string {
  const lines: string[] = [];
  write(pino(options, { write: (line: string) => void lines.push(line) }));
  return lines.join('').replace(TIME, '"time":0');
}

test.each([
  ['with what pino adds by itself', {}],
  ['with nothing added', { base: null }],
  ['with members of its own', { base: { app: 'é"' } }],
])('a line is written as pino would: %s', (_what, options) => {
  const ours = writtenBy(options, (log) => renderedLines(log.child({ a: 1 }))('"route":"/mcp","ms":1.50'));
  const pinos = writtenBy(options, (log) => log.child({ a: 1 }).info({ route: '/mcp', ms: 1.5 }));
  expect(JSON.parse(ours)).toEqual(JSON.parse(pinos));
  expect(ours).toMatch(/\}\n$/);
});

test('the logger itself goes on as before', () => {
  const text = writtenBy({ base: null }, (log) => {
    renderedLines(log);
    log.info({ route: '/mcp' }, 'hello');
  });
  expect(JSON.parse(text)).toEqual({ level: 30, time: 0, route: '/mcp', msg: 'hello' });
});
