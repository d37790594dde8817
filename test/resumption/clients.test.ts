import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep, until } from '../support/net.js';
import { connectPinned, PINNED } from '../support/pinned-clients.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { type ResumptionRig, startResumption } from './rig.js';

useVirtualTime();

const original = globalThis.fetch;

/** A `fetch` whose event streams can be cut, as a network does it. */
function breakable() {
  const open = new Set<{ method: string; cut: () => void }>();
  const resumed: string[] = [];
  const cutting: typeof fetch = async (input, init) => {
    const lastEventId = new Headers(init?.headers).get('last-event-id');
    if (lastEventId !== null) resumed.push(lastEventId);
    const response = await original(input, init);
    if (response.headers.get('content-type') !== 'text/event-stream' || response.body === null)
      return response;
    const reader = response.body.getReader();
    const method = init?.method ?? 'GET';
    const body = new ReadableStream({
      async start(controller) {
        const entry = {
          method,
          cut: () => {
            open.delete(entry);
            controller.error(new TypeError('network error'));
            void reader.cancel();
          },
        };
        open.add(entry);
        for (;;) {
          const { done, value } = await reader.read();
          if (!open.has(entry)) return;
          if (done) break;
          controller.enqueue(value);
        }
        open.delete(entry);
        controller.close();
      },
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
  return {
    fetch: cutting,
    resumed,
    count: (of: string) => [...open].filter(({ method }) => method === of).length,
    cut: (of: string) => {
      for (const { method, cut } of open) if (method === of) cut();
    },
  };
}

/** The clients of 2025-06-18 resume the stream of the session alone. */
const RESUMING = Object.keys(PINNED).filter((name) => name !== 'SDK 1.17.5');

describe.each(['LL', 'LM'] as const)('%s: a client of', (cell) => {
  let rig: ResumptionRig;
  beforeAll(async () => {
    rig = await startResumption(cell, { script: { capabilities: { tools: { listChanged: true } } } });
  });
  afterAll(() => rig.close());

  test.each(RESUMING)('%s has its result although the connection broke in mid-call', async (name) => {
    const network = breakable();
    const client = await connectPinned(name, rig.gateway.url(), { fetch: network.fetch });
    try {
      const progress: number[] = [];
      let answer: Promise<{ content: { text: string }[] }> | undefined;
      const remote = await rig.nextCall(() => {
        const onprogress = (report: { progress: number }) => void progress.push(report.progress);
        const params = { name: 'slow', arguments: {} };
        answer =
          name === 'SDK 2.4'
            ? client.sdk.callTool(params, { onprogress })
            : client.sdk.callTool(params, undefined, { onprogress });
      });
      remote.progress(1);
      await until(() => progress.length === 1, 'the first progress');
      network.cut('POST');
      remote.progress(2);
      await sleep(30);
      remote.progress(3);
      await until(() => network.resumed.length > 0, 'the client to come back');
      await until(() => progress.length === 3, 'what it missed');
      remote.finish('whole');
      expect((await answer)?.content[0]?.text).toBe('whole');
      expect(progress).toEqual([1, 2, 3]);
      expect(network.resumed).toHaveLength(1);
    } finally {
      await client.close();
    }
  });

  test('every release but the oldest reads on when the stream of its session broke, once', async () => {
    // The oldest does not come back before it has seen an id.
    const names = Object.keys(PINNED).filter((name) => name !== 'SDK 1.12.3');
    const clients = names.map(async (name) => {
      const network = breakable();
      return { network, client: await connectPinned(name, rig.gateway.url(), { fetch: network.fetch }) };
    });
    for (const { network, client } of await Promise.all(clients)) {
      await until(() => network.count('GET') === 1, 'the stream of the session');
      network.cut('GET');
      await until(() => network.count('GET') === 1, 'the client to come back');
      expect((await client.sdk.listTools()).tools).toHaveLength(1);
    }
    // Nothing drives them round in circles, each time after a second.
    await sleep(1_500);
    for (const { network, client } of await Promise.all(clients)) {
      expect(network.count('GET')).toBe(1);
      expect(network.resumed.length).toBeLessThanOrEqual(1);
      await client.close();
    }
  });

  test('an error at the end of a stream does not make clients come back for ever', async () => {
    const failed = async (name: string) => {
      const network = breakable();
      const client = await connectPinned(name, rig.gateway.url(), { fetch: network.fetch });
      let answer: Promise<unknown> | undefined;
      const remote = await rig.nextCall(() => {
        answer = client.sdk.callTool({ name: 'slow', _meta: { progressToken: name } });
      });
      remote.progress(1);
      remote.fail(-32_602, 'no such thing');
      await expect(answer).rejects.toMatchObject({ code: -32_602 });
      return { network, client };
    };
    const clients = [];
    for (const name of Object.keys(PINNED)) clients.push(await failed(name));
    await sleep(2_500);
    for (const { network, client } of clients) {
      expect(network.resumed.length).toBeLessThanOrEqual(1);
      expect(network.count('GET')).toBe(1);
      await client.close();
    }
  });

  test.each(Object.keys(PINNED))(
    '%s makes one call after the other, and nothing is fetched again',
    async (name) => {
      const network = breakable();
      const client = await connectPinned(name, rig.gateway.url(), { fetch: network.fetch });
      try {
        for (let n = 0; n < 3; n += 1) {
          let answer: Promise<unknown> | undefined;
          const remote = await rig.nextCall(() => {
            answer = client.sdk.callTool({
              name: 'slow',
              arguments: { n },
              _meta: { progressToken: `${n}` },
            });
          });
          remote.progress(1);
          remote.finish(`${n}`);
          expect(await answer).toMatchObject({ content: [{ text: `${n}` }] });
        }
        expect(network.resumed).toEqual([]);
        expect(client.errors.filter(({ message }) => !/progress/i.test(message))).toEqual([]);
      } finally {
        await client.close();
      }
    },
  );
});
