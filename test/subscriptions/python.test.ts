import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startRig, textOf } from '../questions/rig.js';
import { CLIENT_KINDS, type ClientKind } from '../support/clients.js';
import { type Loose, until } from '../support/net.js';
import {
  hasPython,
  PYTHON_LIBRARIES,
  PYTHON_NEEDED,
  type PythonLibrary,
  startPythonTelling,
} from '../support/peers/index.js';
import { ALL_LISTS, PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED, UPDATED } from './rig.js';

const URI = 'note://today';

/** Servers by what their libraries declare to whom they speak with in the legacy era. */
const SERVERS: [PythonLibrary, route: Loose, honoured: Loose][] = [
  // Declares nothing, whatever its tools tell.
  ['mcp 1.29.0', {}, {}],
  ['FastMCP 3.4.5', {}, ALL_LISTS],
  // A client of either era finds its own in it.
  ['mcp 2.3.0', {}, { ...ALL_LISTS, resourceSubscriptions: [URI] }],
  ['mcp 2.3.0', { backend: { era: 'legacy' } }, { resourceSubscriptions: [URI] }],
  ['mcp 2.3.0', { backend: { era: 'modern' } }, { ...ALL_LISTS, resourceSubscriptions: [URI] }],
];

describe.runIf(hasPython).each(SERVERS)(
  `a server on %s, with the route %j${PYTHON_NEEDED}`,
  (library, route, honoured) => {
    let rig: Rig;
    beforeAll(async () => {
      rig = await startRig(() => startPythonTelling(library), route);
    });
    afterAll(() => rig?.close());

    test.each(CLIENT_KINDS)('tells client %s of each change', async (kind: ClientKind) => {
      const client = await rig.connect(kind, { capabilities: {} });
      const heard = (method: string) => client.notifications.filter((one) => one.method === method).length;
      let subscription: Loose;
      if (client.era === 'modern') {
        subscription = await client.sdk.listen({ ...ALL_LISTS, resourceSubscriptions: [URI] });
        expect(subscription.honoredFilter).toEqual(honoured);
      } else await client.sdk.subscribeResource({ uri: URI });
      const subscribes = client.era === 'legacy' || 'resourceSubscriptions' in honoured;
      await until(async () => {
        await client.callTool('tell', { what: 'tools' });
        return heard(TOOLS_CHANGED) > 0;
      }, 'the first change');
      client.notifications.length = 0;
      for (const what of ['prompts', 'resources', ...(subscribes ? ['updated'] : [])])
        await client.callTool('tell', { what });
      for (const method of [PROMPTS_CHANGED, RESOURCES_CHANGED])
        await until(() => heard(method) === 1, method);
      if (subscribes) await until(() => heard(UPDATED) === 1, 'the update');
      if (subscription) await subscription.close();
      else await client.sdk.unsubscribeResource({ uri: URI });
      expect(client.errors).toEqual([]);
    });

    test('shows a tool that is new to the client that called for it, at once', async () => {
      for (const kind of CLIENT_KINDS) {
        const client = await rig.connect(kind, { capabilities: {} });
        const name = `grown_for_${kind.replace(' ', '_')}`;
        const names = async () => (await client.listTools()).map((tool) => tool.name);
        expect(await names()).not.toContain(name);
        expect(textOf(await client.callTool('grow', { name }))).toBe(name);
        await until(async () => (await names()).includes(name), 'the tool');
      }
    });

    test('leaves no subscription behind', async () => {
      const client = await rig.connect('v2 legacy', { capabilities: {} });
      await until(async () => textOf(await client.callTool('subscriptions')) === '', 'the end of all', 4_000);
    });

    test('is shown only frames of the gateway that fit the schema of their revision', () => {
      expect(rig.recording.violations).toEqual([]);
    });
  },
);

test('every library is told of by some server', () => {
  expect(new Set(SERVERS.map(([library]) => library))).toEqual(new Set(PYTHON_LIBRARIES));
});
