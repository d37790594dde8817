import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALL_CAPABILITIES, person, type Rig, startRig } from '../questions/rig.js';
import { CLIENT_KINDS } from '../support/clients.js';
import { type Loose, until } from '../support/net.js';
import { startEverything } from '../support/peers/index.js';
import { ALL_LISTS, RESOURCES_CHANGED, UPDATED } from './rig.js';

const URI = 'demo://resource/dynamic/text/1';

describe('server-everything', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(startEverything);
  });
  afterAll(() => rig?.close());

  test.each(CLIENT_KINDS)('tells client %s of a resource that it subscribed to', async (kind) => {
    const client = await rig.connect(kind, { capabilities: {} });
    const updates = () => client.notifications.filter(({ method }) => method === UPDATED);
    let subscription: Loose;
    if (client.era === 'modern') {
      subscription = await client.sdk.listen({ resourceSubscriptions: [URI] });
      expect(subscription.honoredFilter).toEqual({ resourceSubscriptions: [URI] });
    } else await client.sdk.subscribeResource({ uri: URI });
    await client.callTool('toggle-subscriber-updates');
    await until(() => updates().length === 1, 'the first update');
    expect(updates()[0]?.params.uri).toBe(URI);
    await client.callTool('toggle-subscriber-updates');
    await subscription?.close();
    expect(client.errors).toEqual([]);
  });

  test.each(
    CLIENT_KINDS.flatMap((kind) => [
      [kind, 'can be asked nothing', {}] as const,
      [kind, 'can be asked', ALL_CAPABILITIES] as const,
    ]),
  )('tells client %s that %s of a resource that its call has made', async (kind, _what, capabilities) => {
    const asks = 'elicitation' in capabilities;
    const client = await rig.connect(kind, { capabilities, handlers: asks ? person().handlers : {} });
    const changes = () => client.notifications.filter(({ method }) => method === RESOURCES_CHANGED).length;
    const subscription = client.era === 'modern' ? await client.sdk.listen(ALL_LISTS) : undefined;
    if (subscription) expect(subscription.honoredFilter).toEqual(ALL_LISTS);
    const before = changes();
    const data = `data:text/plain,${kind.replace(' ', '')}`;
    // A legacy client's own stream is there a moment after its handshake.
    await until(async () => {
      await client.callTool('gzip-file-as-resource', { name: `${Math.random()}.gz`, data });
      return changes() > before;
    }, 'the change');
    await subscription?.close();
    expect(client.errors).toEqual([]);
  });

  test('is shown only frames of the gateway that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});
