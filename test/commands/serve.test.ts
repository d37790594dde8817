import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../src/commands/command-line.js';
import type { Gateway } from '../../src/gateway.js';
import { example, testContext } from './support.js';

const EVENTS = [
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR2',
  'uncaughtException',
  'unhandledRejection',
  'beforeExit',
] as const;

let listeners: Map<string, readonly unknown[]>;
let exits: (number | undefined)[];

beforeEach(() => {
  listeners = new Map(EVENTS.map((event) => [event, process.listeners(event as 'SIGTERM')]));
  exits = [];
  vi.spyOn(process, 'exit').mockImplementation(((code?: number) => {
    exits.push(code);
  }) as typeof process.exit);
  vi.spyOn(process.stdout, 'write').mockImplementation(() => true);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  for (const event of EVENTS) {
    for (const listener of process.listeners(event as 'SIGTERM')) {
      if (!listeners.get(event)?.includes(listener)) process.off(event, listener);
    }
  }
});

function handlersAdded(event: string): number {
  return process.listenerCount(event) - (listeners.get(event)?.length ?? 0);
}

async function serve(gateway: Partial<Gateway>) {
  const close = vi.fn(gateway.close ?? (async () => {}));
  const createGateway = vi.fn(() => ({
    listen: async () => 'http://127.0.0.1:8080',
    attach: () => ({ [Symbol.dispose]() {} }),
    ...gateway,
    close,
  }));
  const { context, printed } = testContext({ createGateway });
  const code = await runCommandLine(['--config', example('minimal.yaml')], context);
  return { code, close, createGateway, printed };
}

test('serve starts the gateway of the file and keeps running', async () => {
  const { code, createGateway, close } = await serve({});
  expect(code).toBe(0);
  expect(createGateway).toHaveBeenCalledWith(expect.objectContaining({ keepAliveMs: 15_000 }), {
    log: expect.objectContaining({ level: 'info' }),
    exchanges: expect.objectContaining({ level: 'info' }),
  });
  expect(close).not.toHaveBeenCalled();
  expect(exits).toEqual([]);
});

test.each(['SIGTERM', 'SIGINT'] as const)('%s closes the gateway and ends with 0', async (signal) => {
  const { close } = await serve({});
  process.emit(signal);
  await vi.waitFor(() => expect(exits).toEqual([0]));
  expect(close).toHaveBeenCalledTimes(1);
});

test('a gateway that does not close ends within ten seconds, with 0', async () => {
  await serve({ close: () => new Promise(() => {}) });
  vi.useFakeTimers({ now: 0 });
  process.emit('SIGTERM');
  await vi.advanceTimersByTimeAsync(8_900);
  expect(exits).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(exits[0]).toBe(0);
});

test('a second signal ends the process at once', async () => {
  let closed = (): void => {};
  const closing = new Promise<void>((resolve) => {
    closed = resolve;
  });
  await serve({ close: () => closing });
  process.emit('SIGTERM');
  process.emit('SIGTERM');
  expect(exits).toEqual([1]);
  // Here the process goes on, and must not be ended when the time limit of closing is over.
  closed();
  await vi.waitFor(() => expect(exits).toEqual([1, 0]));
});

test('a gateway that cannot listen is closed, and its signal handlers are removed', async () => {
  const listen = () => Promise.reject(new Error('listen EADDRINUSE: address already in use 127.0.0.1:8080'));
  const { code, close, printed } = await serve({ listen });
  expect(code).toBe(1);
  expect(printed.stderr).toBe('eragate: listen EADDRINUSE: address already in use 127.0.0.1:8080\n');
  expect(close).toHaveBeenCalledTimes(1);
  expect(handlersAdded('SIGTERM')).toBe(0);
});

test('signals of a broken process have no handler', async () => {
  await serve({});
  expect(process.listenerCount('SIGSEGV')).toBe(0);
  expect(process.listenerCount('SIGABRT')).toBe(0);
});

test('serve does not start from a file with problems', async () => {
  const createGateway = vi.fn();
  const { context, printed } = testContext({ createGateway });
  expect(await runCommandLine(['serve', '--config', example('full.yaml')], context)).toBe(1);
  expect(printed.stderr).toContain('which is not in the environment');
  expect(createGateway).not.toHaveBeenCalled();
});
