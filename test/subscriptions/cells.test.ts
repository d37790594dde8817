import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startRig } from '../questions/rig.js';
import { CLIENT_KINDS, type TestClient } from '../support/clients.js';
import { type Loose, sleep, until } from '../support/net.js';
import { fixture, startV1, startV2 } from '../support/peers/index.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { ALL_LISTS, PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED, UPDATED } from './rig.js';

useVirtualTime();

const URI = fixture.CONFIG_URI;

/** Lets an SDK client hear of everything, in the way of its era. */
async function hearAll(client: TestClient): Promise<Loose> {
  if (client.era === 'modern') return client.sdk.listen({ ...ALL_LISTS, resourceSubscriptions: [URI] });
  await client.sdk.subscribeResource({ uri: URI });
  return undefined;
}

describe.each([
  ['SDK 1.x', () => startV1()],
  ['SDK 1.x with resumable streams', () => startV1({ resumable: true })],
  ['SDK 1.x that answers in JSON', () => startV1({ json: true })],
  ['SDK 2.x', () => startV2({ legacy: 'reject' })],
])('a server of %s', (_name, start) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(start);
  });
  afterAll(() => rig?.close());

  test.each(CLIENT_KINDS)('is heard once by client %s, until it wants no more', async (kind) => {
    const client = await rig.connect(kind);
    const heard = (method: string) => client.notifications.filter((one) => one.method === method);
    const subscription = await hearAll(client);
    if (subscription)
      expect(subscription.honoredFilter).toEqual({ ...ALL_LISTS, resourceSubscriptions: [URI] });
    // A legacy client's own stream, and what is behind it, is there a moment later.
    const { announce } = rig.peer;
    await until(() => {
      if (heard(PROMPTS_CHANGED).length === 0) announce.promptsChanged();
      return heard(PROMPTS_CHANGED).length > 0;
    }, 'the first change');
    client.notifications.length = 0;
    announce.toolsChanged();
    announce.resourcesChanged();
    announce.resourceUpdated(URI);
    announce.resourceUpdated('file:///other');
    await until(() => client.notifications.length >= 3, 'three changes');
    await sleep(100);
    const methods = client.notifications
      .map(({ method }) => method)
      .filter((method) => method !== PROMPTS_CHANGED);
    const updates = heard(UPDATED).map(({ params }) => params.uri);
    // SDK servers of the legacy era leave it to the application who has subscribed to what; the fixture tells all.
    const others = client.era === 'legacy' && rig.peer.name.startsWith('v1') ? ['file:///other'] : [];
    expect(updates).toEqual([URI, ...others]);
    expect(methods.filter((method) => method !== UPDATED)).toEqual([TOOLS_CHANGED, RESOURCES_CHANGED]);
    if (client.era === 'modern') await subscription.close();
    else await client.sdk.unsubscribeResource({ uri: URI });
    expect(client.errors).toEqual([]);
    await client.close();
  });

  test('lets SDK clients open by themselves what they listen to', async () => {
    const kinds = ['v2 legacy', 'v2 pin'] as const;
    for (const kind of kinds) {
      const changed: string[] = [];
      const onChanged = (what: string) => ({
        autoRefresh: false,
        debounceMs: 10,
        onChanged: () => changed.push(what),
      });
      const client = await rig.connect(kind, {
        listChanged: { tools: onChanged('tools'), prompts: onChanged('prompts') },
      });
      if (kind === 'v2 pin') expect(client.sdk.autoOpenedSubscription).toBeDefined();
      for (let n = 0; n < 20 && changed.length === 0; n += 1) {
        rig.peer.announce.toolsChanged();
        await sleep(100);
      }
      expect(changed).toContain('tools');
      await client.close();
    }
  });

  test('is shown only frames of the gateway that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});

test('an SDK client is told in the proper way that the gateway ends', async () => {
  const rig = await startRig(() => startV1());
  const client = await rig.connect('v2 pin');
  const subscription = await hearAll(client);
  const closing = rig.gateway.close();
  expect(await subscription.closed).toBe('graceful');
  await closing;
  await rig.close();
});
