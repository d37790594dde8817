import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { person, type Rig, startRig } from '../questions/rig.js';
import {
  ALL_LISTS,
  PROMPTS_CHANGED,
  RESOURCES_CHANGED,
  TOOLS_CHANGED,
  UPDATED,
} from '../subscriptions/rig.js';
import { CLIENT_KINDS, type ClientKind, type TestClient } from '../support/clients.js';
import { type Loose, until } from '../support/net.js';
import { asking, fixture, startV1 } from '../support/peers/index.js';
import { useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

/** One client of each era. */
const TWO: readonly ClientKind[] = ['v1', 'v2 pin'];
const URI = fixture.CONFIG_URI;

async function hearAll(client: TestClient): Promise<Loose> {
  if (client.era === 'modern') return client.sdk.listen({ ...ALL_LISTS, resourceSubscriptions: [URI] });
  await client.sdk.subscribeResource({ uri: URI });
  return undefined;
}

describe.each([['http-sse'], ['auto']])('a server of SDK 1.x on HTTP+SSE, reached by %s', (transport) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(() => startV1({ sse: true }), { backend: { transport } });
  });
  afterAll(() => rig?.close());

  test.each(TWO)('sends changes to client %s', async (kind) => {
    const client = await rig.connect(kind);
    const heard = (method: string) => client.notifications.filter((one) => one.method === method);
    const subscription = await hearAll(client);
    const { announce } = rig.peer;
    await until(() => {
      if (heard(PROMPTS_CHANGED).length === 0) announce.promptsChanged();
      return heard(PROMPTS_CHANGED).length > 0;
    }, 'the first change');
    client.notifications.length = 0;
    announce.toolsChanged();
    announce.resourcesChanged();
    announce.resourceUpdated(URI);
    const others = () => client.notifications.filter(({ method }) => method !== PROMPTS_CHANGED);
    await until(() => others().length >= 3, 'three changes');
    expect(others().map(({ method }) => method)).toEqual([TOOLS_CHANGED, RESOURCES_CHANGED, UPDATED]);
    if (client.era === 'modern') await subscription.close();
    await client.close();
  });

  test.each(CLIENT_KINDS)('serves client %s', async (kind) => {
    const client = await rig.connect(kind);
    const tools = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('add');
    const sum = await client.callTool('add', { a: 2, b: 3 });
    expect(sum.content[0].text).toBe('The sum of 2 and 3 is 5.');
    expect((await client.listResources()).length).toBeGreaterThan(fixture.RESOURCES_PER_PAGE);
    const { contents } = await client.readResource(URI);
    expect(contents[0].uri).toBe(URI);
    expect((await client.getPrompt('greet', { name: 'Ada' })).messages[0].content.text).toContain('Ada');
    const failed = await client.callTool('fail');
    expect(failed.isError).toBe(true);
    await expect(client.readResource('file:///nowhere')).rejects.toThrow(/not found/i);
    const big = await client.callTool('big', { bytes: 2_000_000 });
    expect(big.content[0].text).toHaveLength(2_000_000);
    expect(client.errors).toEqual([]);
    await client.close();
  });

  test.each(TWO)('sends progress and logs, and gets cancellations, with client %s', async (kind) => {
    const client = await rig.connect(kind);
    const progress: number[] = [];
    const call = { onprogress: (step: Loose) => progress.push(step.progress) };
    await Promise.all([
      client.callTool('slow', { ms: 60, steps: 3 }, call),
      client.callTool('slow', { ms: 40, steps: 2 }, { onprogress: () => {} }),
    ]);
    // SDK clients drop progress that comes in one piece with the result.
    expect(progress).toEqual([1, 2, 3].slice(0, progress.length));
    if (client.era === 'legacy') {
      await client.sdk.setLoggingLevel('debug');
      await client.callTool('log', { message: 'so far so good' });
      await until(() => client.logs.length > 0, 'the log message');
      expect(client.logs[0]).toMatchObject({ data: 'so far so good', level: 'info' });
    }
    const abort = new AbortController();
    const { calls } = rig.peer;
    const before = calls.length;
    const cancelled = client.callTool('slow', { ms: 20_000, steps: 1 }, { signal: abort.signal });
    await until(() => calls.length > before, 'the call to begin');
    abort.abort();
    await expect(cancelled).rejects.toThrow();
    await until(() => calls.at(-1)?.cancelled, 'the tool to be cancelled');
    await client.close();
  });

  test.each(TWO)('sends server requests to client %s', async (kind) => {
    const { asked, handlers } = person();
    const client = await rig.connect(kind, { handlers });
    const rounds = [{ name: asking.form('Who?', 'name') }, { said: asking.sample('Hello') }];
    const result = await client.callTool('ask', { rounds });
    expect(JSON.parse(result.content[0].text)).toMatchObject({
      name: { action: 'accept', content: { name: 'to: Who?' } },
      said: { content: { text: '1 heard' } },
    });
    expect(asked.map(({ method }) => method)).toEqual(['elicitation/create', 'sampling/createMessage']);
    await client.close();
  });

  test.each(TWO)('sends changes to client %s again after a restart', async (kind) => {
    const client = await rig.connect(kind);
    const subscription = await hearAll(client);
    await rig.peer.restart();
    await until(
      () => {
        rig.peer.announce.promptsChanged();
        return client.notifications.some(({ method }) => method === PROMPTS_CHANGED);
      },
      'a change',
      15_000,
    );
    if (client.era === 'modern') await subscription.close();
    await client.close();
  });

  test('sends legacy clients only frames that fit their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });

  test('has no sessions left when the gateway ends', async () => {
    expect(rig.peer.sessions()).toBeGreaterThan(0);
    await rig.gateway.close();
    await until(() => rig.peer.sessions() === 0, 'the streams to be closed');
  });
});
