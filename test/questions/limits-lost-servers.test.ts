import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../src/commands/command-line.js';
import { createGateway } from '../../src/gateway.js';
import { testContext } from '../commands/support.js';
import { configText } from '../support/gateway.js';
import { freePort, sleep, until } from '../support/net.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { askingRoutes } from './asking-route.js';
import {
  accept,
  all,
  form,
  ModernCaller,
  readQuestions,
  startAskingBackend,
  text,
  toolText,
} from './scripted.js';

useVirtualTime();

const { keep, setUp } = askingRoutes();

describe('a server that gives up on its own question', () => {
  test.each(['the stream of the call', 'the stream of the session'])(
    'on %s: the retry gets the result, the server no answer',
    async (where) => {
      const { backend, caller } = await setUp();
      backend.tool(async ({ ask, push, notify, session }) => {
        if (where === 'the stream of the call') {
          void ask('elicitation/create', form('?'), 'mine');
          await sleep(100);
          notify('notifications/cancelled', { requestId: 'mine', reason: 'timed out' });
        } else {
          void push('elicitation/create', form('?'), 'mine');
          await sleep(100);
          backend.streams
            .find((one) => one.session === session)
            ?.stream.event({
              jsonrpc: '2.0',
              method: 'notifications/cancelled',
              params: { requestId: 'mine' },
            });
        }
        return text('without you');
      });
      const round = await caller().asked();
      await sleep(200);
      expect(toolText(await caller().retry(round.state, { [round.key]: accept('late') }))).toBe(
        'without you',
      );
      expect(backend.answers).toEqual([]);
      expect((await caller().retry(round.state, {})).json.error.code).toBe(-32602);
    },
  );

  test('and asks another: the retry that answers the old one is asked that', async () => {
    const { backend, caller } = await setUp();
    backend.tool(async ({ ask, notify, elicit }) => {
      void ask('elicitation/create', form('Old?'), 7);
      await sleep(100);
      notify('notifications/cancelled', { requestId: 7 });
      return text(await elicit('New?'));
    });
    const first = await caller().asked();
    await sleep(200);
    const second = readQuestions(await caller().retry(first.state, { [first.key]: accept('old') }));
    expect(second.requests[second.key].params.message).toBe('New?');
    expect(second.keys).toHaveLength(1);
    expect(second.key).not.toBe(first.key);
    expect(toolText(await caller().retry(second.state, { [second.key]: accept('new') }))).toBe('new');
    expect(backend.answers.map(({ json }) => json.result.content.value)).toEqual(['new']);
  });

  test('and takes back one of two before the client hears of them', async () => {
    const { backend, caller } = await setUp();
    backend.tool(async ({ ask, notify, elicit }) => {
      void ask('elicitation/create', form('Old?'), 7);
      notify('notifications/cancelled', { requestId: 7 });
      return text(await elicit('New?'));
    });
    const round = await caller().asked();
    expect(round.keys).toHaveLength(1);
    expect(round.requests[round.key].params.message).toBe('New?');
    expect(toolText(await caller().retry(round.state, { [round.key]: accept('new') }))).toBe('new');
  });

  test('a withdrawal of what was never asked does no harm', async () => {
    const { backend, caller } = await setUp();
    backend.tool(async ({ notify, elicit, id }) => {
      for (const requestId of [99, '0', id, null, undefined])
        notify('notifications/cancelled', { requestId });
      return text(await elicit('?'));
    });
    const round = await caller().asked();
    expect(toolText(await caller().retry(round.state, { [round.key]: accept('x') }))).toBe('x');
  });

  test('with an error as its result', async () => {
    const { backend, caller } = await setUp();
    backend.tool(async ({ ask, stream, id }) => {
      void ask('elicitation/create', form('?'));
      await sleep(60);
      stream.event({
        jsonrpc: '2.0',
        id,
        error: { code: -32001, message: 'Request timed out', data: { timeout: 60 } },
      });
      stream.end();
      return undefined;
    });
    const round = await caller().asked();
    await sleep(120);
    const answer = await caller().retry(round.state, { [round.key]: accept('late') });
    expect(answer.json.error).toMatchObject({ message: 'Request timed out', data: { timeout: 60 } });
  });
});

describe('a server that is gone while its question is open', () => {
  test.each(['ends its stream', 'breaks its connection'])('%s: the retry gets an error', async (how) => {
    const { backend, caller } = await setUp();
    backend.tool(async ({ ask, stream }) => {
      void ask('elicitation/create', form('?'));
      await sleep(100);
      if (how === 'ends its stream') stream.end();
      else stream.destroy();
      return undefined;
    });
    const round = await caller().asked();
    await sleep(150);
    const answer = await caller().retry(round.state, { [round.key]: accept('late') });
    expect([answer.status, answer.json.error.code]).toEqual([502, -32603]);
    expect(answer.json.error.message).toMatch(/^The connection to the server behind route .* broke/);
    expect(backend.answers).toEqual([]);
    // Another call of the client is served.
    backend.tool(async () => text('plain'));
    expect(toolText(await caller().start())).toBe('plain');
  });

  test('stops and starts again: the retry gets an error, and the next call has a session of its own', async () => {
    const { backend, caller } = await setUp();
    const round = await caller().asked();
    await backend.stop();
    backend.sessions.clear();
    await backend.start();
    await sleep(50);
    const answer = await caller().retry(round.state, { [round.key]: accept('late') });
    expect([answer.status, answer.json.error.code]).toEqual([502, -32603]);
    const again = await caller().asked();
    expect(backend.calls[1]?.session).not.toBe(backend.calls[0]?.session);
    expect(toolText(await caller().retry(again.state, { [again.key]: accept('x') }))).toBe('x');
  });

  test('goes away while the retry waits: the waiting request gets an error', async () => {
    const { backend, caller } = await setUp();
    backend.tool(async ({ elicit, stream }) => {
      await elicit('?');
      await sleep(50);
      stream.destroy();
      return undefined;
    });
    const round = await caller().asked();
    const copies = await all([1, 2], () => caller().retry(round.state, { [round.key]: accept('x') }));
    for (const answer of copies) expect([answer.status, answer.json.error.code]).toEqual([502, -32603]);
  });

  test('does not take the answer: the call fails in the end, and nothing hangs', async () => {
    const { backend, caller } = await setUp({ timeouts: { total: '700ms' } });
    backend.tool(async ({ elicit, cancelled }) => {
      await Promise.race([elicit('?'), cancelled()]);
      return undefined;
    });
    const round = await caller().asked();
    backend.sessions.clear();
    const answer = await caller().retry(round.state, { [round.key]: accept('x') });
    expect(answer.json.error.code).toBe(-32603);
  });
});

describe('the gateway ends while calls wait for people', () => {
  test('promptly, and tells the server of each call', async () => {
    const { backend, gateway, caller } = await setUp();
    await all(Array(20), () => caller().asked());
    const startedAt = performance.now();
    await gateway.stop();
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    const ids = (calls: { session: string | undefined }[]): unknown[] =>
      calls.map(({ session }) => session).sort();
    expect(ids(backend.cancels)).toEqual(ids(backend.calls));
    await until(() => backend.sessions.size === 0, 'the end of every session');
    await until(() => backend.calls.every(({ stream }) => stream.closed), 'the end of every call');
  });

  test('also where the questions are just being gathered, or an outcome waits to be fetched', async () => {
    const { backend, gateway, caller } = await setUp();
    backend.tool(async ({ ask }) => {
      void ask('elicitation/create', form('?'));
      await sleep(50);
      return text('done');
    });
    await caller().asked();
    await sleep(100);
    backend.tool(async ({ elicit }) => text(await elicit('?')));
    const last = caller().start();
    await until(() => backend.calls.length === 2, 'the call');
    const startedAt = performance.now();
    await gateway.stop();
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    // It was asked, or told that the gateway ends; it does not hang.
    expect((await last).json).toBeDefined();
  });

  test('a retry that waits for its server gets the outcome within the time for draining', async () => {
    const { backend, gateway, caller } = await setUp();
    backend.tool(async ({ elicit }) => {
      const value = await elicit('?');
      await sleep(300);
      return text(value);
    });
    const round = await caller().asked();
    const retry = caller().retry(round.state, { [round.key]: accept('x') });
    await until(() => backend.answers.length === 1, 'the answer');
    await gateway.stop();
    expect(toolText(await retry)).toBe('x');
  });

  test('on SIGTERM', async () => {
    const backend = await keep(startAskingBackend());
    const folder = await mkdtemp(join(tmpdir(), 'questions-'));
    const file = join(folder, 'gateway.yaml');
    const port = await freePort();
    const routes = { '/mcp': { backend: { url: backend.url, era: 'legacy' } } };
    await writeFile(file, configText(routes, { listen: { port }, log: { level: 'silent' } }));
    const exits: unknown[] = [];
    vi.spyOn(process, 'exit').mockImplementation(
      ((code: number) => void exits.push(code)) as typeof process.exit,
    );
    const before = new Map(process.eventNames().map((name) => [name, process.listeners(name as 'SIGTERM')]));
    try {
      const { context } = testContext({ createGateway: (config, options) => createGateway(config, options) });
      expect(await runCommandLine(['serve', '--config', file], context)).toBe(0);
      const caller = new ModernCaller(`http://127.0.0.1:${port}/mcp`, {});
      await all(Array(5), () => caller.asked());
      const startedAt = performance.now();
      process.emit('SIGTERM');
      await until(() => exits.length > 0, 'the end of the process');
      expect(exits[0]).toBe(0);
      expect(performance.now() - startedAt).toBeLessThan(2_000);
      expect(backend.cancels).toHaveLength(5);
      expect(backend.sessions.size).toBe(0);
    } finally {
      vi.restoreAllMocks();
      for (const name of process.eventNames()) {
        for (const listener of process.listeners(name as 'SIGTERM'))
          if (!before.get(name)?.includes(listener)) process.off(name, listener);
      }
      await rm(folder, { recursive: true });
    }
  });
});
