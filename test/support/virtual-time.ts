import { performance } from 'node:perf_hooks';
import { request } from 'undici';
import { afterAll, beforeAll, vi } from 'vitest';

const { nodeTiming } = performance;
const later = setTimeout;

/** Turns of the event loop without an event after which the process is idle. */
const IDLE_TURNS = 4;

/** Events that the loop has read from sockets and pipes so far. */
const eventCount = (): number => nodeTiming.uvMetricsInfo.events;

/** Work in other threads that ends without an event before: look-ups of names, and files. */
const ELSEWHERE = /^(GetAddrInfoReqWrap|FSReqCallback|FSReqPromise)$/;
const worksElsewhere = (): boolean => process.getActiveResourcesInfo().some((name) => ELSEWHERE.test(name));

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Each copy of undici, node's own and that of npm, keeps one timer object for ever. Made while time is virtual it would never fire
 * again in this process, so it is made before.
 */
const primed = Promise.allSettled([request('http://127.0.0.1:2/'), fetch('http://127.0.0.1:2/')]);

async function run(stopped: () => boolean): Promise<void> {
  let idle = 0;
  let seen = eventCount();
  while (!stopped()) {
    await turn();
    const now = eventCount();
    idle = now === seen ? idle + 1 : 0;
    seen = now;
    if (idle < IDLE_TURNS || stopped()) continue;
    idle = 0;
    if (vi.getTimerCount() > 0 && !worksElsewhere()) vi.advanceTimersToNextTimer();
    else await new Promise((resolve) => later(resolve, 1));
  }
}

/**
 * For the tests of a file whose gateway, backends and clients are all in this process: time passes only while nothing else is to be
 * done, and then at once, to the next timer. Nothing is late on a busy machine, and no test waits.
 *
 * What node times by itself (idle sockets, `AbortSignal.timeout`) keeps to real time, and so does undici. Not for files with child
 * processes or compression: their work is not seen as such.
 */
export function useVirtualTime(): void {
  let over = false;
  beforeAll(async () => {
    await primed;
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
    });
    run(() => over).catch((error) => {
      process.nextTick(() => {
        throw error;
      });
    });
  });
  afterAll(() => {
    over = true;
    vi.useRealTimers();
  });
}
