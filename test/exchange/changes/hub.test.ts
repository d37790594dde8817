import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type Change,
  type ListChange,
  listChange,
  resourceUpdate,
  subjectOf,
} from '../../../src/exchange/changes/change.js';
import { type ChangeFilter, isEmpty, NO_CHANGES } from '../../../src/exchange/changes/change-filter.js';
import type { ChangeSourceListener } from '../../../src/exchange/changes/change-source.js';
import { Hub } from '../../../src/exchange/changes/hub.js';
import type { Subscriber } from '../../../src/exchange/changes/subscription.js';
import { badGateway } from '../../../src/exchange/errors.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const filter = (lists: ListChange[], resources: string[] = []): ChangeFilter => ({
  lists: new Set(lists),
  resources: new Set(resources),
});
const TOOLS = filter(['toolsListChanged']);
const ALL = (...resources: string[]) => filter(['toolsListChanged', 'promptsListChanged'], resources);
const shown = ({ lists, resources }: ChangeFilter) => [...lists, ...resources].sort().join(' ');

/** A hub on an upstream that is told what to do. */
function start() {
  let listener!: ChangeSourceListener;
  const applied: string[] = [];
  const observed: string[] = [];
  const faults: unknown[] = [];
  let pending = 0;
  let most = 0;
  let closed = 0;
  let idle = 0;
  const up = {
    /** What the backend says to a filter. */
    answer: (wanted: ChangeFilter): Promise<ChangeFilter> | ChangeFilter => wanted,
    detach: (): Promise<ChangeFilter> | ChangeFilter => NO_CHANGES,
    tell: (change: Change) => listener.onChange(change),
    gap: () => listener.onGap(),
    down: () => listener.onDown(),
  };
  const hub = new Hub({
    open: (given) => {
      listener = given;
      return {
        async apply(wanted) {
          applied.push(shown(wanted));
          pending += 1;
          most = Math.max(most, pending);
          try {
            return isEmpty(wanted) ? await up.detach() : await up.answer(wanted);
          } finally {
            pending -= 1;
          }
        },
        close() {
          closed += 1;
        },
      };
    },
    onChange: (change) => observed.push(subjectOf(change)),
    onIdle: () => {
      idle += 1;
    },
    onFault: (error) => faults.push(error),
  });
  return { hub, up, applied, observed, faults, most: () => most, closed: () => closed, idle: () => idle };
}

class RecordingSubscriber implements Subscriber {
  readonly heard: string[] = [];
  narrowed = 0;
  onChange(change: Change): void {
    this.heard.push(change.uri ?? change.method.split('/')[1] ?? '');
  }
  onNarrowed(): void {
    this.narrowed += 1;
  }
}

const failing = () => Promise.reject(badGateway('away'));

describe('a hub', () => {
  test('asks for the union of what is wanted, and tells each what it wanted', async () => {
    const { hub, up, applied } = start();
    const [one, other] = [new RecordingSubscriber(), new RecordingSubscriber()];
    const first = await hub.subscribe(ALL('a'), one);
    const second = await hub.subscribe(filter(['toolsListChanged'], ['a', 'b']), other);
    expect(applied).toEqual([
      'a promptsListChanged toolsListChanged',
      'a b promptsListChanged toolsListChanged',
    ]);
    expect(shown(first.honoured)).toBe('a promptsListChanged toolsListChanged');
    expect(shown(second.honoured)).toBe('a b toolsListChanged');
    for (const change of [
      listChange('promptsListChanged'),
      resourceUpdate('a/x'),
      resourceUpdate('b'),
      resourceUpdate('c'),
    ])
      up.tell(change);
    expect(one.heard).toEqual(['prompts', 'a/x']);
    expect(other.heard).toEqual(['a/x', 'b']);
  });

  test('asks for nothing anew where the union stays the same', async () => {
    const { hub, applied } = start();
    const one = await hub.subscribe(ALL('a', 'b'), new RecordingSubscriber());
    const other = await hub.subscribe(TOOLS, new RecordingSubscriber());
    await other.update(filter([], ['b']));
    other.close();
    await vi.advanceTimersByTimeAsync(0);
    expect(applied).toHaveLength(1);
    one.close();
  });

  test('takes one step at a time, and what comes meanwhile in one', async () => {
    const { hub, up, applied, most } = start();
    let answer = () => {};
    up.answer = (wanted) =>
      new Promise((resolve) => {
        answer = () => resolve(wanted);
      });
    const first = hub.subscribe(filter([], ['a']), new RecordingSubscriber());
    await vi.advanceTimersByTimeAsync(0);
    const others = ['b', 'c', 'd'].map((uri) => hub.subscribe(filter([], [uri]), new RecordingSubscriber()));
    await vi.advanceTimersByTimeAsync(0);
    expect(applied).toEqual(['a']);
    answer();
    await first;
    await vi.advanceTimersByTimeAsync(0);
    expect(applied).toEqual(['a', 'a b c d']);
    answer();
    expect((await Promise.all(others)).map(({ honoured }) => shown(honoured))).toEqual(['b', 'c', 'd']);
    expect(most()).toBe(1);
  });

  test('wants no longer what was refused, and asks again for whoever comes next', async () => {
    const { hub, up, applied } = start();
    up.answer = ({ lists, resources }) => ({
      lists,
      resources: new Set([...resources].filter((uri) => uri !== 'no')),
    });
    const subscriber = new RecordingSubscriber();
    const subscription = await hub.subscribe(filter([], ['a', 'no']), subscriber);
    expect(shown(subscription.honoured)).toBe('a');
    up.tell(resourceUpdate('no'));
    expect(subscriber.heard).toEqual([]);
    const later = await hub.subscribe(filter([], ['no']), new RecordingSubscriber());
    expect(shown(later.honoured)).toBe('');
    expect(applied).toEqual(['a no', 'a no']);
  });

  test('tells of a list that was not agreed to, if it is told of after all', async () => {
    const { hub, up } = start();
    up.answer = () => NO_CHANGES;
    const subscriber = new RecordingSubscriber();
    const { honoured } = await hub.subscribe(TOOLS, subscriber);
    expect(isEmpty(honoured)).toBe(true);
    up.tell(listChange('toolsListChanged'));
    expect(subscriber.heard).toEqual(['tools']);
  });

  test('refuses whoever comes while the backend cannot be asked, and leaves the others what they had', async () => {
    const { hub, up, applied } = start();
    const subscriber = new RecordingSubscriber();
    const subscription = await hub.subscribe(TOOLS, subscriber);
    up.answer = failing;
    await expect(hub.subscribe(filter([], ['a']), new RecordingSubscriber())).rejects.toThrow('away');
    await expect(subscription.update(filter([], ['b']))).rejects.toThrow('away');
    up.answer = (wanted) => wanted;
    up.tell(listChange('toolsListChanged'));
    expect(subscriber.heard).toEqual(['tools']);
    await hub.subscribe(filter([], ['c']), new RecordingSubscriber());
    expect(applied.at(-1)).toBe('c toolsListChanged');
  });

  test('that goes down tries again with growing pauses, and tells all that something may have changed', async () => {
    const { hub, up, applied, observed } = start();
    const [one, other] = [new RecordingSubscriber(), new RecordingSubscriber()];
    await hub.subscribe(ALL('a'), one);
    await hub.subscribe(TOOLS, other);
    await vi.advanceTimersByTimeAsync(60_000);
    up.answer = failing;
    up.down();
    up.down();
    const tries = applied.length;
    const at = async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms);
      return applied.length - tries;
    };
    expect(await at(499)).toBe(0);
    expect(await at(1)).toBe(1);
    expect(await at(999)).toBe(1);
    expect(await at(1)).toBe(2);
    expect(await at(2_000)).toBe(3);
    expect(await at(120_000)).toBeLessThanOrEqual(10);
    expect(one.heard).toEqual([]);
    up.answer = (wanted) => wanted;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(one.heard.sort()).toEqual(['a', 'prompts', 'tools']);
    expect(other.heard).toEqual(['tools']);
    expect(new Set(observed)).toContain('notifications/resources/list_changed');
    const after = applied.length;
    await vi.advanceTimersByTimeAsync(120_000);
    expect(applied).toHaveLength(after);
  });

  test('that comes and goes is not tried ever so often', async () => {
    const { hub, up, applied } = start();
    await hub.subscribe(TOOLS, new RecordingSubscriber());
    await vi.advanceTimersByTimeAsync(60_000);
    const before = applied.length;
    for (let n = 0; n < 100; n += 1) {
      up.down();
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(applied.length - before).toBeLessThan(12);
    // One that was steady for a while is tried at once.
    await vi.advanceTimersByTimeAsync(60_000);
    const then = applied.length;
    up.down();
    await vi.advanceTimersByTimeAsync(500);
    expect(applied).toHaveLength(then + 1);
  });

  test('that is up again by somebody else coming does not try once more', async () => {
    const { hub, up, applied } = start();
    const subscriber = new RecordingSubscriber();
    await hub.subscribe(TOOLS, subscriber);
    up.down();
    const late = new RecordingSubscriber();
    await hub.subscribe(ALL('a'), late);
    expect(subscriber.heard).toEqual(['tools']);
    // Who has only come has missed nothing.
    expect(late.heard).toEqual([]);
    const then = applied.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(applied).toHaveLength(then);
  });

  test('tells those for whom less is left than was agreed to', async () => {
    const { hub, up } = start();
    const [both, lists] = [new RecordingSubscriber(), new RecordingSubscriber()];
    const subscription = await hub.subscribe(filter(['toolsListChanged'], ['a']), both);
    await hub.subscribe(TOOLS, lists);
    up.answer = ({ lists: kept }) => ({ lists: kept, resources: new Set() });
    up.down();
    await vi.advanceTimersByTimeAsync(500);
    expect([both.narrowed, lists.narrowed]).toEqual([1, 0]);
    expect(shown(subscription.honoured)).toBe('toolsListChanged');
    expect(both.heard).toEqual(['tools']);
  });

  test('keeps trying for a subscriber that wants that, until the backend can be asked', async () => {
    const { hub, up } = start();
    up.answer = failing;
    const subscriber = new RecordingSubscriber();
    const subscription = hub.join(subscriber);
    expect(isEmpty(await subscription.update(TOOLS, { keepTrying: true }))).toBe(true);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(subscriber.heard).toEqual([]);
    up.answer = (wanted) => wanted;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(subscriber.heard).toEqual(['tools']);
    expect(shown(subscription.honoured)).toBe('toolsListChanged');
  });

  test('reports what is no failure of the backend, and tries again all the same', async () => {
    const { hub, up, faults, applied } = start();
    await hub.subscribe(TOOLS, new RecordingSubscriber());
    const fault = new TypeError('a fault of the gateway');
    up.answer = () => Promise.reject(fault);
    up.down();
    await vi.advanceTimersByTimeAsync(500);
    expect(faults).toEqual([fault]);
    up.answer = (wanted) => wanted;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(applied).toHaveLength(3);
  });

  test('hurries where what kept it down may be over', async () => {
    const { hub, up, applied } = start();
    await hub.subscribe(TOOLS, new RecordingSubscriber());
    hub.retryNow();
    await vi.advanceTimersByTimeAsync(0);
    expect(applied).toHaveLength(1);
    up.answer = failing;
    up.down();
    await vi.advanceTimersByTimeAsync(20_000);
    up.answer = (wanted) => wanted;
    const then = applied.length;
    hub.retryNow();
    await vi.advanceTimersByTimeAsync(0);
    expect(applied).toHaveLength(then + 1);
  });

  test('passes a gap on to each for what it hears of', async () => {
    const { hub, up } = start();
    const subscriber = new RecordingSubscriber();
    await hub.subscribe(filter([], ['a', 'b']), subscriber);
    up.gap();
    expect(subscriber.heard).toEqual(['a', 'b']);
  });

  test('lets go of the backend a moment after the last has left, and ends then', async () => {
    const { hub, applied, closed, idle } = start();
    const subscription = await hub.subscribe(ALL('a'), new RecordingSubscriber());
    subscription.close();
    subscription.close();
    await vi.advanceTimersByTimeAsync(900);
    expect([applied.length, closed()]).toEqual([1, 0]);
    const next = await hub.subscribe(ALL('a'), new RecordingSubscriber());
    await vi.advanceTimersByTimeAsync(5_000);
    expect([applied.length, closed()]).toEqual([1, 0]);
    next.close();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(applied).toEqual(['a promptsListChanged toolsListChanged', '']);
    expect([closed(), idle()]).toEqual([1, 1]);
  });

  test('begins anew for whoever comes while it lets go', async () => {
    const { hub, up, applied, closed } = start();
    let release = () => {};
    up.detach = () =>
      new Promise((resolve) => {
        release = () => resolve(NO_CHANGES);
      });
    (await hub.subscribe(ALL('a'), new RecordingSubscriber())).close();
    await vi.advanceTimersByTimeAsync(1_000);
    const coming = hub.subscribe(ALL('a'), new RecordingSubscriber());
    await vi.advanceTimersByTimeAsync(1_000);
    expect(applied.slice(1)).toEqual(['']);
    release();
    expect(shown((await coming).honoured)).toBe('a promptsListChanged toolsListChanged');
    expect(applied.slice(2)).toEqual(['a promptsListChanged toolsListChanged']);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(closed()).toBe(0);
  });

  test('that is closed tells nobody anything, and tries nothing more', async () => {
    const { hub, up, applied, closed, idle } = start();
    const subscriber = new RecordingSubscriber();
    await hub.subscribe(TOOLS, subscriber);
    up.down();
    hub.close();
    hub.close();
    await vi.advanceTimersByTimeAsync(60_000);
    up.tell(listChange('toolsListChanged'));
    expect([applied.length, closed(), idle(), subscriber.heard]).toEqual([1, 1, 1, []]);
  });
});
