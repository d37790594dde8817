import { afterEach, describe, expect, test } from 'vitest';
import { type Loose, sleep, until } from '../support/net.js';
import { legacy, modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  ALL_LISTS,
  cacheOf,
  heardBy,
  listen,
  listenLegacy,
  Opened,
  PROMPTS_CHANGED,
  RESOURCES_CHANGED,
  startTelling,
  type TellingBackend,
  TOOLS_CHANGED,
  UPDATED,
} from './rig.js';

useVirtualTime();

const opened = new Opened();
afterEach(() => opened.closeAll());

describe('of changes that the gateway hears of, each drops what it makes old', () => {
  const CHANGES: [string, Loose][] = [
    [TOOLS_CHANGED, undefined],
    [PROMPTS_CHANGED, undefined],
    [RESOURCES_CHANGED, undefined],
    [UPDATED, { uri: 'file:///dir/a' }],
  ];
  const MADE_OLD: Record<string, string[]> = {
    [TOOLS_CHANGED]: ['tools/list'],
    [PROMPTS_CHANGED]: ['prompts/list'],
    [RESOURCES_CHANGED]: ['resources/list', 'resources/templates/list'],
    [UPDATED]: ['file:///dir/a', 'file:///dir', 'file:///dir/a/part'],
  };
  const READS = ['file:///dir/a', 'file:///dir', 'file:///dir/a/part', 'file:///dir/ab', 'file:///other'];
  const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];
  const ASKABLE = { elicitation: { form: {} } };

  type Place =
    | 'a subscription'
    | 'a legacy client'
    | 'a call'
    | 'a call with its own session'
    | 'a session that nobody watches';
  const PLACES: [Place, 'legacy' | 'modern'][] = [
    ['a subscription', 'legacy'],
    ['a subscription', 'modern'],
    ['a legacy client', 'legacy'],
    ['a legacy client', 'modern'],
    ['a call', 'legacy'],
    ['a call', 'modern'],
    ['a call with its own session', 'legacy'],
    ['a session that nobody watches', 'legacy'],
  ];

  test.each(PLACES)('those that come on the stream of %s (%s backend)', async (place, era) => {
    const hints = era === 'modern' ? { resultType: 'complete', ttlMs: 600_000, cacheScope: 'private' } : {};
    const on: Loose = {
      'tools/call': async (step: Loose) => {
        const { method, params } = step.params.arguments;
        const getStream = () =>
          backend.streams.find((one) => one.session === step.session && !one.stream.closed)?.stream;
        const stream = step.stream();
        const target = place === 'a call' ? stream : await until(getStream, 'the stream');
        target.event({ jsonrpc: '2.0', method, params });
        await sleep(20);
        stream.event(step.frame({ result: { ...hints, content: [] } }));
        stream.end();
        return undefined;
      },
    };
    for (const method of [...LISTS, 'resources/read']) {
      const member = { 'resources/templates/list': 'resourceTemplates', 'resources/read': 'contents' }[
        method
      ];
      on[method] = () => ({ result: { ...hints, [member ?? method.split('/')[0] ?? '']: [] } });
    }
    const backend: TellingBackend = await startTelling[era]({ on });
    const cache = Object.fromEntries([...LISTS, 'resources/read'].map((method) => [method, '10m']));
    const { url, gateway } = await opened.routeTo(backend, { cache });
    const all = async () => {
      for (const method of LISTS) await modern(url, method);
      for (const uri of READS) await modern(url, 'resources/read', { uri });
    };
    const filter = { ...ALL_LISTS, resourceSubscriptions: READS };
    if (place === 'a subscription') opened.add(await listen(url, filter));
    if (place === 'a legacy client') {
      const session = await legacy(url);
      opened.add(await listenLegacy(session));
      for (const uri of READS) await session.request('resources/subscribe', { uri });
      await until(() => backend.listeners().length === 1, 'its stream');
      await sleep(200);
    }
    await all();
    const asked = () => backend.requests.length;
    for (const [method, params] of CHANGES) {
      const before = asked();
      await all();
      expect([method, asked() - before]).toEqual([method, 0]);
      if (place.startsWith('a call')) {
        const capabilities = place === 'a call' ? {} : ASKABLE;
        const args = { method, ...(params ? { params } : {}) };
        await modern(url, 'tools/call', { name: 'tell', arguments: args }, { capabilities });
      } else {
        backend.tell(method, params);
        await sleep(50);
      }
      const already = backend.requests.length;
      await all();
      const again = backend.requests.slice(already).map(({ json }) => json.params.uri ?? json.method);
      expect([method, again.sort()]).toEqual([method, MADE_OLD[method]?.toSorted()]);
    }
    expect(cacheOf(gateway, 'resources/read')).toContain('hit');
  });
});

test('what was served from memory, asked for and dropped is counted, and told at the end', async () => {
  const result = { resultType: 'complete', ttlMs: 600_000, cacheScope: 'private', tools: [] };
  const backend = await startTelling.modern({ on: { 'tools/list': () => ({ result }) } });
  const { gateway, url } = await opened.routeTo(backend);
  for (let i = 0; i < 3; i++) await modern(url, 'tools/list');
  const listener = opened.add(await listen(url, ALL_LISTS));
  backend.tell(TOOLS_CHANGED);
  await heardBy(listener, 1);
  await modern(url, 'tools/list');
  await gateway.close();
  const told = gateway.logs.find(({ msg }) => msg === 'results kept');
  expect(told).toMatchObject({ route: '/mcp', hits: 2, misses: 2, joined: 0, stale: 0, invalidations: 1 });
});
