import { afterAll, beforeAll, describe, test } from 'vitest';
import { connectV2 } from '../support/clients.js';
import { startGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { fixture, type Peer, startV1, startV2 } from '../support/peers/index.js';

const LISTS = ['tools', 'prompts', 'resources'] as const;

let peers: Record<string, Peer>;
let gateway: Awaited<ReturnType<typeof startGateway>>;

beforeAll(async () => {
  peers = { '/legacy': await startV1({}), '/modern': await startV2({ legacy: 'reject' }) };
  gateway = await startGateway(
    Object.fromEntries(Object.entries(peers).map(([path, { url }]) => [path, url])),
  );
});

afterAll(async () => {
  await gateway.close();
  for (const peer of Object.values(peers)) await peer.close();
});

describe.each(['/legacy', '/modern'])('on the backend %s', (path) => {
  test.each(['legacy', 'pin'] as const)(
    'a %s client hears of every change that it asked for',
    async (mode) => {
      const peer = peers[path] as Peer;
      const client = await connectV2(gateway.url(path), mode);
      const heard = (method: string): number =>
        client.notifications.filter((n) => n.method === method).length;
      let subscription: Loose;
      if (mode === 'pin') {
        subscription = await client.sdk.listen({
          toolsListChanged: true,
          promptsListChanged: true,
          resourcesListChanged: true,
          resourceSubscriptions: [fixture.CONFIG_URI],
        });
      } else {
        await until(() => gateway.logs.length >= 0);
        await client.sdk.subscribeResource({ uri: fixture.CONFIG_URI });
      }
      await new Promise((resolve) => setTimeout(resolve, 300));
      for (const list of LISTS) await peer.announce[`${list}Changed`]();
      await peer.announce.resourceUpdated(fixture.CONFIG_URI);
      for (const list of LISTS) await until(() => heard(`notifications/${list}/list_changed`) === 1);
      await until(() => heard('notifications/resources/updated') === 1);
      await subscription?.close?.();
      await client.close();
    },
  );
});
