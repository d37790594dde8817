import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALL_CAPABILITIES, MODEL, person } from '../questions/rig.js';
import { type ClientKind, connect, type TestClient } from '../support/clients.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { EVERYTHING } from './rig.js';

const UPDATED = 'notifications/resources/updated';
const RESOURCES_CHANGED = 'notifications/resources/list_changed';
const script = (file: string) => fileURLToPath(new URL(`../interop/peers/servers/${file}`, import.meta.url));
const node = (...args: string[]) => ({ command: process.execPath, args });
const pythons = process.env['ERAGATE_TEST_PYTHON'];
const python = (environment: string, library: string) => ({
  command: join(pythons ?? '', environment, 'bin/python'),
  args: [script('python.py'), library, 'stdio', '0'],
});

/** What servers are started with, and whether they speak the legacy era alone. */
const SERVERS: [string, Loose, boolean][] = [
  ['the TypeScript SDK 1', node(script('ts-sdk-1.mjs'), 'stdio'), true],
  ['the TypeScript SDK 2, modern only', node(script('ts-sdk-2.mjs'), 'stdio', '0', 'reject'), false],
  ['the TypeScript SDK 2, of both eras', node(script('ts-sdk-2.mjs'), 'stdio', '0', 'serve'), false],
];
const PYTHON_SERVERS: [string, Loose, boolean][] = [
  ['mcp 1', python('1', 'mcp1'), true],
  // It takes seconds to start.
  ['FastMCP 3', python('1', 'fastmcp'), true],
  ['mcp 2', python('2', 'mcp2'), false],
];
const CLIENTS: readonly ClientKind[] = ['v1', 'v2 auto'];

let gateway: TestGateway | undefined;
const open = new Set<TestClient>();
async function connected(kind: ClientKind, options: Loose): Promise<TestClient> {
  const client = await connect(kind, gateway?.url() ?? '', options);
  open.add(client);
  return client;
}
const said = (result: Loose) => result.content?.[0]?.text;
/** Subscribes to the updates of a resource, in the way of the client's era. */
async function subscribe(client: TestClient, uri: string): Promise<Loose> {
  if (client.era === 'modern') return client.sdk.listen({ resourceSubscriptions: [uri] });
  await client.sdk.subscribeResource({ uri });
  return undefined;
}
const updates = ({ notifications }: TestClient) => notifications.filter(({ method }) => method === UPDATED);

async function serve(backend: Loose): Promise<void> {
  // A Python server is slow to start on a busy machine.
  gateway = await startGateway({ '/mcp': { backend, timeouts: { probe: '10s' } } });
}
async function closeAll(): Promise<void> {
  await Promise.all([...open].map((client) => client.close().catch(() => {})));
  open.clear();
  await gateway?.close();
}

function behavesAsItShould([, backend, legacyOnly]: [string, Loose, boolean]): void {
  beforeAll(() => serve(backend));
  afterAll(closeAll);

  test.each(CLIENTS)('serves client %s', async (kind) => {
    const someone = person({ form: () => ({ action: 'accept', content: { name: 'Ada' } }) });
    const client = await connected(kind, { capabilities: ALL_CAPABILITIES, handlers: someone.handlers });
    expect((await client.listTools()).map(({ name }) => name)).toEqual(
      expect.arrayContaining(['add', 'slow', 'ask']),
    );
    expect(said(await client.callTool('add', { a: 2, b: 3 }))).toBe('5');
    expect((await client.callTool('fail')).isError).toBe(true);
    const progress: number[] = [];
    await client.callTool('slow', {}, { onprogress: (step) => progress.push(step.progress) });
    expect(progress).toEqual([1, 2, 3]);
    expect(said(await client.callTool('ask'))).toBe('Hello Ada');
    expect(someone.asked.map(({ method }) => method)).toEqual(['elicitation/create']);
    expect((await client.readResource('note://today')).contents[0].text).toBe('Today');
    const answers = await Promise.all([1, 2, 3, 4, 5].map((a) => client.callTool('add', { a, b: a })));
    expect(answers.map(said)).toEqual(['2', '4', '6', '8', '10']);
    expect(client.errors).toEqual([]);
  });

  test('has its era detected', () => {
    const verdict = gateway?.logs.find(({ msg }) => msg === 'era of the backend');
    expect(verdict.era).toBe(legacyOnly ? 'legacy' : 'modern');
  });
}

describe.each(SERVERS)('a server of %s on standard streams', (...row) => behavesAsItShould(row));

describe.skipIf(pythons === undefined).each(PYTHON_SERVERS)(
  'a Python server of %s on standard streams (left out: run `test/python/install.sh DIR` and set ERAGATE_TEST_PYTHON=DIR)',
  (...row) => behavesAsItShould(row),
);

describe('server-everything on standard streams', () => {
  beforeAll(() => serve(node(...EVERYTHING)));
  afterAll(closeAll);

  test.each(CLIENTS)('serves client %s: progress and questions', async (kind) => {
    const someone = person({
      form: () => ({ action: 'decline' }),
      sampling: ({ messages }) => ({
        ...MODEL,
        content: { type: 'text', text: `heard: ${messages[0].content.text}` },
      }),
    });
    const client = await connected(kind, { capabilities: ALL_CAPABILITIES, handlers: someone.handlers });
    expect(said(await client.callTool('echo', { message: 'Zażółć 🚀' }))).toBe('Echo: Zażółć 🚀');
    const progress: number[] = [];
    await client.callTool(
      'trigger-long-running-operation',
      { duration: 0.2, steps: 4 },
      {
        onprogress: (step) => progress.push(step.progress),
      },
    );
    expect(progress).toEqual([1, 2, 3, 4]);
    expect(said(await client.callTool('trigger-elicitation-request'))).toMatch(/User declined/);
    expect(JSON.stringify(await client.callTool('trigger-sampling-request', { prompt: 'Hi' }))).toContain(
      'heard: ',
    );
    expect((await client.listResources()).length).toBeGreaterThan(5);
    expect(client.errors).toEqual([]);
  });

  test.each([
    ['v1', {}],
    ['v2 auto', {}],
    ['v2 auto', ALL_CAPABILITIES],
  ] as const)(
    'sends client %s, with the capabilities %j, updates and changes',
    async (kind, capabilities) => {
      const { handlers } = person();
      const client = await connected(kind, {
        capabilities,
        ...('elicitation' in capabilities && { handlers }),
      });
      const uri = 'demo://resource/dynamic/text/1';
      const subscription = await subscribe(client, uri);
      await client.callTool('toggle-subscriber-updates');
      await until(() => updates(client).length > 0, 'an update');
      expect(updates(client)[0]?.params.uri).toBe(uri);
      await client.callTool('toggle-subscriber-updates');
      await subscription?.close();

      const lists =
        client.era === 'modern' ? await client.sdk.listen({ resourcesListChanged: true }) : undefined;
      await until(async () => {
        await client.callTool('gzip-file-as-resource', {
          name: `${Math.random()}.gz`,
          data: 'data:text/plain,x',
        });
        return client.notifications.some(({ method }) => method === RESOURCES_CHANGED);
      }, 'the change');
      await lists?.close();
      expect(client.errors).toEqual([]);
    },
  );
});
