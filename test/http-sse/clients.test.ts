import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ALL_CAPABILITIES, person } from '../questions/rig.js';
import { PROMPTS_CHANGED, TOOLS_CHANGED, UPDATED } from '../subscriptions/rig.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { asking, fixture, type Peer, startV1, startV2 } from '../support/peers/index.js';
import { useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

const URI = fixture.CONFIG_URI;

interface Connected {
  sdk: Client;
  heard: { method: string; params: Loose }[];
  errors: Error[];
  asked: string[];
  call(name: string, args?: Loose, options?: Loose): Promise<Loose>;
}

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});

/** An SDK 1.x client on HTTP+SSE. */
async function connect(gateway: TestGateway, headers?: Record<string, string>): Promise<Connected> {
  const { asked, handlers } = person();
  const sdk = new Client({ name: 'ExampleClient', version: '1.0.0' }, { capabilities: ALL_CAPABILITIES });
  const heard: Connected['heard'] = [];
  const errors: Error[] = [];
  sdk.onerror = (error) => errors.push(error);
  sdk.fallbackNotificationHandler = async ({ method, params }) => void heard.push({ method, params });
  const answer = (method: string) => (({ params }: Loose) => handlers[method]?.(params)) as Loose;
  sdk.setRequestHandler(ElicitRequestSchema, answer('elicitation/create'));
  sdk.setRequestHandler(CreateMessageRequestSchema, answer('sampling/createMessage'));
  const options = headers === undefined ? {} : { requestInit: { headers }, eventSourceInit: { headers } };
  await sdk.connect(new SSEClientTransport(new URL(`${gateway.url()}/sse`), options as Loose) as Loose);
  opened.push(sdk);
  return {
    sdk,
    heard,
    errors,
    get asked() {
      return asked.map(({ method }) => method);
    },
    call: (name, args = {}, more = {}) => sdk.callTool({ name, arguments: args }, CallToolResultSchema, more),
  };
}

test('a gateway can stand behind another one on HTTP+SSE', async () => {
  const peer = await startV1();
  opened.push(peer);
  const inner = await startGateway({ '/mcp': { backend: { url: peer.url }, legacySse: true } });
  opened.push(inner);
  const outer = await startGateway({ '/mcp': { backend: { url: `${inner.url()}/sse` }, legacySse: true } });
  opened.push(outer);
  const { call, sdk, errors } = await connect(outer);
  expect((await call('add', { a: 2, b: 3 })).content[0].text).toBe('The sum of 2 and 3 is 5.');
  const rounds = [{ name: asking.form('Who?', 'name') }];
  expect(JSON.parse((await call('ask', { rounds })).content[0].text).name.action).toBe('accept');
  expect(errors).toEqual([]);
  await sdk.close();
  await until(() => peer.sessions() === 0, 'the session to be ended all the way', 10_000);
});

describe.each([
  ['SDK 1.x', () => startV1()],
  ['SDK 2.x, modern alone', () => startV2({ legacy: 'reject' })],
  ['SDK 1.x on HTTP+SSE', () => startV1({ sse: true })],
])('a client on HTTP+SSE and a server of %s', (_name, start) => {
  let peer: Peer;
  let gateway: TestGateway;
  beforeAll(async () => {
    peer = await start();
    gateway = await startGateway({ '/mcp': { backend: { url: peer.url }, legacySse: true } });
  });
  afterAll(async () => {
    await gateway?.close();
    await peer?.close();
  });

  test('call each other', async () => {
    const { sdk, call, errors } = await connect(gateway);
    expect((await sdk.listTools()).tools.map(({ name }) => name)).toContain('add');
    expect((await call('add', { a: 2, b: 3 })).content[0].text).toBe('The sum of 2 and 3 is 5.');
    expect((await sdk.readResource({ uri: URI })).contents[0]?.uri).toBe(URI);
    await expect(sdk.readResource({ uri: 'file:///nowhere' })).rejects.toMatchObject({ code: -32002 });
    expect((await call('fail')).isError).toBe(true);
    const sizes = [3_000_000, 10, 200_000];
    const results = await Promise.all(sizes.map((bytes) => call('big', { bytes })));
    expect(results.map(({ content }) => content[0].text.length)).toEqual(sizes);
    expect(errors).toEqual([]);
  });

  test('exchange progress, log messages and cancellations', async () => {
    const { sdk, call, heard, errors } = await connect(gateway);
    const progress: number[] = [];
    await call('slow', { ms: 60, steps: 3 }, { onprogress: (step: Loose) => progress.push(step.progress) });
    // This client drops progress that comes in one piece with the result.
    expect(progress).toEqual([1, 2, 3].slice(0, progress.length));
    await sdk.setLoggingLevel('debug');
    await call('log', { message: 'so far so good' });
    await until(() => heard.some(({ params }) => params.data === 'so far so good'), 'the log message');
    const abort = new AbortController();
    const before = peer.calls.length;
    const cancelled = call('slow', { ms: 20_000, steps: 1 }, { signal: abort.signal });
    await until(() => peer.calls.length > before, 'the call to begin');
    abort.abort();
    await expect(cancelled).rejects.toThrow();
    await until(() => peer.calls.at(-1)?.cancelled, 'the tool to be cancelled');
    // Any response to it would have arrived by now.
    await call('add', { a: 1, b: 1 });
    expect(errors.filter(({ message }) => !message.includes('progress notification'))).toEqual([]);
  });

  test('exchange server requests and answers', async () => {
    const client = await connect(gateway);
    const rounds = [{ name: asking.form('Who?', 'name') }, { said: asking.sample('Hello') }];
    const result = await client.call('ask', { rounds });
    expect(JSON.parse(result.content[0].text)).toMatchObject({
      name: { action: 'accept', content: { name: 'to: Who?' } },
      said: { content: { text: '1 heard' } },
    });
    expect(client.asked).toEqual(['elicitation/create', 'sampling/createMessage']);
  });

  test('exchange changes', async () => {
    const { sdk, heard } = await connect(gateway);
    await sdk.subscribeResource({ uri: URI });
    const told = (method: string) => heard.filter((one) => one.method === method);
    await until(() => {
      if (told(PROMPTS_CHANGED).length === 0) peer.announce.promptsChanged();
      return told(PROMPTS_CHANGED).length > 0;
    }, 'the first change');
    peer.announce.toolsChanged();
    peer.announce.resourceUpdated(URI);
    await until(() => told(TOOLS_CHANGED).length > 0 && told(UPDATED).length > 0, 'the changes');
  });

  test('are disconnected when the client closes', async () => {
    const { sdk, call } = await connect(gateway);
    const before = peer.calls.length;
    const lost = call('slow', { ms: 20_000, steps: 1 }).catch((error: Error) => error);
    await until(() => peer.calls.length > before, 'the call to begin');
    await sdk.close();
    await until(() => peer.calls.at(-1)?.cancelled, 'the tool to be cancelled');
    expect(await lost).toBeInstanceOf(Error);
    await until(() => peer.sessions() === 0, 'the sessions to be ended', 10_000);
  });
});
