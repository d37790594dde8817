import { expect } from 'vitest';
import type { TestClient } from '../support/clients.js';
import { type Loose, sleep, until } from '../support/net.js';
import type { Peer } from '../support/peers/index.js';
import type { Subject } from './subjects.js';

/** A client that is connected, and what stands at the other end. */
export interface Pair {
  readonly client: TestClient;
  readonly subject: Subject;
  readonly peer: Peer;
  /** A cancellation gets through to the tool, and the peer tells. */
  readonly aborts: boolean;
  /** Connects another client of the same kind, with the same counters. */
  another(): Promise<TestClient>;
}

const textOf = (result: Loose) => result.content[0].text;
const failure = (call: Promise<unknown>): Promise<Loose> =>
  call.then(
    (result) => expect.fail(`went well: ${JSON.stringify(result)}`),
    (error) => error,
  );

/** What every client does with every server, by the sentence that says so. */
export const SCENARIOS: Record<string, (pair: Pair) => Promise<void>> = {
  async 'lists tools, prompts, resources and templates to the last page'({ client, subject }) {
    const tools = (await client.listTools()).map(({ name }) => name);
    expect(tools).toEqual(expect.arrayContaining([subject.sum.tool, subject.echo.tool, ...subject.tools]));
    expect(new Set(tools).size).toBe(tools.length);
    expect((await client.listPrompts()).map(({ name }) => name)).toContain(subject.prompt.name);
    expect(await client.listResources()).toHaveLength(subject.resources);
    const templates = await client.listResourceTemplates();
    expect(templates.map(({ uriTemplate }) => uriTemplate)).toContain(subject.template);
  },

  async 'calls a tool'({ client, subject }) {
    const result = await client.callTool(subject.sum.tool, { a: 3, b: 4 });
    expect(textOf(result)).toBe(subject.sum.text);
    expect(result.isError ?? false).toBe(false);
    const spoken = 'grüße, 東京 \u2028 "\\';
    const { tool, args, text } = subject.echo;
    expect(textOf(await client.callTool(tool, args(spoken)))).toBe(text(spoken));
  },

  async 'hears of an unknown tool in the way of the server'({ client, subject }) {
    if (subject.era === 'legacy') {
      const result = await client.callTool('nope');
      expect(result.isError).toBe(true);
      expect(textOf(result)).toContain('Tool nope not found');
    } else {
      const error = await failure(client.callTool('nope'));
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('Tool nope not found') });
    }
  },

  async 'gets an error of a tool as a result'({ client, subject }) {
    const result = await client.callTool(subject.failing.tool, subject.failing.args);
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(subject.failing.text);
  },

  async 'reads a resource'({ client, subject }) {
    const { contents } = await client.readResource(subject.resource.uri);
    expect(contents[0].uri).toBe(subject.resource.uri);
    expect(contents[0].text).toMatch(subject.resource.text);
    if (subject.foreign === undefined) return;
    const foreign = await client.readResource(subject.foreign);
    expect(foreign.contents[0]).toMatchObject({ uri: subject.foreign, blob: expect.any(String) });
  },

  async 'hears that a resource is not there'({ client, subject }) {
    const error = await failure(client.readResource(subject.missing));
    // The code of the era: -32602 with the uri in 2026-07-28, -32002 before (or -32602, as many servers had it).
    const codes = client.era === 'modern' ? [-32602] : [-32002, -32602];
    expect(codes).toContain(error.code);
    expect(error.message).toMatch(/not found/i);
  },

  async 'gets a prompt'({ client, subject }) {
    const { messages } = await client.getPrompt(subject.prompt.name, subject.prompt.args);
    expect(messages).toEqual([
      { role: 'user', content: expect.objectContaining({ type: 'text', text: subject.prompt.text }) },
    ]);
    expect(await failure(client.getPrompt('nope'))).toMatchObject({ code: -32602 });
  },

  async 'completes an argument'({ client, subject }) {
    const { completion } = await client.complete(subject.completion.ref, subject.completion.argument);
    expect(completion.values).toEqual(subject.completion.values);
  },

  async 'sees the progress of a call'({ client, subject }) {
    const seen: number[] = [];
    const { tool, args } = subject.slow;
    const onprogress = ({ progress }: Loose) => seen.push(progress);
    await client.callTool(tool, args(60, 3), { onprogress });
    expect(seen).toEqual(subject.streams ? [1, 2, 3] : []);
  },

  async 'cancels a call'({ client, subject, peer, aborts }) {
    const before = peer.calls.length;
    const controller = new AbortController();
    const { tool, args } = subject.slow;
    const call = failure(client.callTool(tool, args(2_000, 4), { signal: controller.signal }));
    if (aborts) await until(() => peer.calls.length > before, 'the call to arrive');
    else await sleep(100);
    controller.abort('enough');
    await call;
    if (aborts) await until(() => peer.calls.at(-1)?.cancelled, 'the server to stop the call');
    expect(textOf(await client.callTool(subject.sum.tool, { a: 3, b: 4 }))).toBe(subject.sum.text);
  },

  async 'keeps two clients with equal ids apart'({ subject, another }) {
    const twins = await Promise.all([another(), another()]);
    const { slow, echo, streams } = subject;
    try {
      const outcomes = await Promise.all(
        twins.map(async (twin, index) => {
          const seen: number[] = [];
          const onprogress = ({ progress }: Loose) => seen.push(progress);
          const steps = index + 1;
          const [, said] = await Promise.all([
            twin.callTool(slow.tool, slow.args(60, steps), { onprogress }),
            twin.callTool(echo.tool, echo.args(`twin ${index}`)),
          ]);
          return { seen, said: textOf(said) };
        }),
      );
      expect(outcomes).toEqual([
        { seen: streams ? [1] : [], said: echo.text('twin 0') },
        { seen: streams ? [1, 2] : [], said: echo.text('twin 1') },
      ]);
      expect(twins.flatMap(({ errors }) => errors)).toEqual([]);
    } finally {
      await Promise.all(twins.map((twin) => twin.close()));
    }
  },
};

/** What only a gateway makes good: the other end goes away between two calls and the client does not notice. */
export const RESTARTS: Record<string, (pair: Pair & { restartGateway(): Promise<void> }) => Promise<void>> = {
  async 'does not notice that the backend was restarted'({ client, subject, peer }) {
    await client.callTool(subject.sum.tool, { a: 3, b: 4 });
    await peer.restart();
    expect(textOf(await client.callTool(subject.sum.tool, { a: 3, b: 4 }))).toBe(subject.sum.text);
    if (subject.name === 'server-everything') return;
    // A fresh process counts from one: the call was run, and once.
    expect(textOf(await client.callTool('count'))).toBe('1');
  },

  async 'does not notice that the gateway was restarted with the same key'({
    client,
    subject,
    restartGateway,
  }) {
    await client.callTool(subject.sum.tool, { a: 3, b: 4 });
    await restartGateway();
    expect(textOf(await client.callTool(subject.sum.tool, { a: 3, b: 4 }))).toBe(subject.sum.text);
    expect(await client.listResources()).toHaveLength(subject.resources);
  },
};
