import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { person, type Rig, startRig } from '../questions/rig.js';
import { TOOLS_CHANGED } from '../subscriptions/rig.js';
import { startGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import {
  asking,
  hasPython,
  PYTHON_LIBRARIES,
  PYTHON_NEEDED,
  runPythonClient,
  startEverything,
  startPython,
  startV1,
  startV2,
} from '../support/peers/index.js';
import { connectOldest, startOldest } from './oldest.js';

const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});
const textOf = ({ content }: Loose): string => content[0].text;

describe('server-everything on HTTP+SSE', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(() => startEverything('sse'));
  });
  afterAll(() => rig?.close());

  test.each(['v1', 'v2 pin'] as const)('serves client %s, and sends it server requests', async (kind) => {
    const { asked, handlers } = person();
    const client = await rig.connect(kind, { handlers });
    expect((await client.listTools()).map(({ name }) => name)).toContain('echo');
    expect(textOf(await client.callTool('echo', { message: 'hello' }))).toBe('Echo: hello');
    const progress: number[] = [];
    const onprogress = (step: Loose) => progress.push(step.progress);
    await client.callTool('trigger-long-running-operation', { duration: 0.2, steps: 2 }, { onprogress });
    expect(progress).toEqual([1, 2].slice(0, progress.length));
    expect((await client.listResources()).length).toBeGreaterThan(0);
    await client.callTool('trigger-sampling-request', { prompt: 'Hi', maxTokens: 5 });
    expect(asked.map(({ method }) => method)).toContain('sampling/createMessage');
    await client.close();
  });
});

describe('a server of the SDK of 2024-11-05', () => {
  test.each(['v1', 'v2 pin'] as const)('serves client %s', async (kind) => {
    const peer = await startOldest();
    const rig = await startRig(async () => peer);
    opened.push(rig);
    const { handlers } = person();
    const client = await rig.connect(kind, { handlers });
    expect((await client.listTools()).map(({ name }) => name)).toEqual(['add', 'think']);
    expect(textOf(await client.callTool('add', { a: 1, b: 2 }))).toBe('3');
    const progress: number[] = [];
    const call = { onprogress: (step: Loose) => progress.push(step.progress) };
    expect(textOf(await client.callTool('think', { about: 'it' }, call))).toBe('1 heard');
    expect(progress[0]).toBe(1);
    if (client.era === 'legacy') {
      peer.announce.toolsChanged();
      await until(() => client.notifications.some(({ method }) => method === TOOLS_CHANGED), 'the change');
    }
    expect(client.errors).toEqual([]);
  });
});

describe.each([
  ['SDK 1.x', () => startV1()],
  ['SDK 2.x, modern alone', () => startV2({ legacy: 'reject' })],
  ['the SDK of 2024-11-05', () => startOldest()],
])('a client of the SDK of 2024-11-05 and a server of %s', (name, start) => {
  test('call each other', async () => {
    const peer = await start();
    opened.push(peer);
    const gateway = await startGateway({ '/mcp': { backend: { url: peer.url }, legacySse: true } });
    opened.push(gateway);
    const { sdk, heard } = await connectOldest(`${gateway.url()}/sse`, person().handlers);
    opened.push(sdk);
    expect((await sdk.listTools()).tools.map((tool: Loose) => tool.name)).toContain('add');
    expect(textOf(await sdk.callTool({ name: 'add', arguments: { a: 1, b: 2 } }))).toMatch(/3/);
    const own = name.includes('2024');
    const rounds = [{ said: asking.sample('Hello') }];
    const asked = own
      ? await sdk.callTool({ name: 'think', arguments: { about: 'it' } })
      : await sdk.callTool({ name: 'ask', arguments: { rounds } });
    expect(textOf(asked)).toContain('1 heard');
    if (!name.includes('modern')) {
      await until(() => {
        peer.announce.toolsChanged();
        return heard.includes(TOOLS_CHANGED);
      }, 'the change');
    }
  });
});

describe.skipIf(!hasPython)(`Python${PYTHON_NEEDED}`, () => {
  test.each(PYTHON_LIBRARIES)('sends server requests with %s on HTTP+SSE', async (library) => {
    // A Python server is slow to start on a busy machine.
    const timeouts = { connect: '15s', start: '15s', probe: '15s' };
    const rig = await startRig(() => startPython(library, { sse: true }), { timeouts });
    opened.push(rig);
    for (const kind of ['v1', 'v2 pin'] as const) {
      const form = () => ({ action: 'accept', content: { name: 'Ada' } });
      const client = await rig.connect(kind, { handlers: person({ form }).handlers });
      expect(textOf(await client.callTool('ask_name'))).toBe('Hello Ada.');
      expect(client.errors).toEqual([]);
    }
  });

  test.each([1, 2] as const)('gets server requests as a client of line %i on HTTP+SSE', async (line) => {
    for (const start of [() => startV1(), () => startV2({ legacy: 'reject' })]) {
      const peer = await start();
      opened.push(peer);
      const gateway = await startGateway({ '/mcp': { backend: { url: peer.url }, legacySse: true } });
      opened.push(gateway);
      const rounds = [{ name: asking.form('Who?', 'name') }, { said: asking.sample('Hello') }];
      const { asked, answers } = await runPythonClient(line, `${gateway.url()}/sse`, { rounds }, true);
      expect(asked).toEqual(['form', 'sampling']);
      expect(answers.name.content).toEqual({ name: 'from Python' });
    }
  });
});
