import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startCell } from '../../support/cells.js';
import { type Loose, until } from '../../support/net.js';
import { type LegacySession, legacy } from '../../support/raw.js';

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;
type Cell = 'LL' | 'LM';

const text = (value: string) => ({ type: 'text', text: value });
const AUDIO = { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' };
const LINK = { type: 'resource_link', uri: 'file:///a', name: 'a', title: 'A', icons: [] };
const IMAGE = { type: 'image', data: 'AAAA', mimeType: 'image/png' };
const EMBEDDED = { type: 'resource', resource: { uri: 'file:///a', text: 'a' } };

/** A result of the newest revision, and what of it is otherwise for clients of those before `since`. */
interface ResultRow {
  readonly method: string;
  readonly result: Loose;
  readonly since: string;
  readonly before: Loose;
}

const call = (result: Loose, since: string, before: Loose): ResultRow => ({
  method: 'tools/call',
  result,
  since,
  before,
});
const prompt = (content: Loose): Loose => ({ messages: [{ role: 'user', content }] });
const NEWEST_TOOL = {
  name: 'a',
  title: 'A',
  description: 'a',
  icons: [{ src: 'https://example.com/a.png' }],
  inputSchema: { type: 'object', $schema: 'https://json-schema.org/draft/2020-12/schema' },
  outputSchema: { type: 'object', properties: { n: { type: 'number' } } },
  annotations: { readOnlyHint: true, title: 'A' },
  _meta: { 'a/b': 1 },
};
const SAME = { since: '2024-11-05', before: undefined };

const RESULTS: Readonly<Record<string, ResultRow>> = {
  'audio becomes text': call({ content: [AUDIO] }, '2025-03-26', {
    content: [text('[audio audio/wav]')],
  }),
  'a link becomes its address': call({ content: [text('see'), LINK] }, '2025-06-18', {
    content: [text('see'), text('file:///a')],
  }),
  'a block of no revision is named': call({ content: [{ type: 'hologram', data: 1 }] }, '2025-06-18', {
    content: [text('[hologram]')],
  }),
  'structured content becomes text too, where there is no other': call(
    { content: [], structuredContent: { n: 1 } },
    '2025-06-18',
    { content: [text('{"n":1}')], structuredContent: { n: 1 } },
  ),
  'structured content beside its text stays as it is': {
    ...call({ content: [text('{"n":1}')], structuredContent: { n: 1 }, _meta: { 'a/b': 1 } }, '', undefined),
    ...SAME,
  },
  'what the first revision had stays as it is': {
    ...call({ content: [text('a'), IMAGE, EMBEDDED], isError: true }, '', undefined),
    ...SAME,
  },
  'audio in a prompt becomes text': {
    method: 'prompts/get',
    result: prompt(AUDIO),
    since: '2025-03-26',
    before: prompt(text('[audio audio/wav]')),
  },
  'a link in a prompt becomes its address': {
    method: 'prompts/get',
    result: prompt(LINK),
    since: '2025-06-18',
    before: prompt(text('file:///a')),
  },
  'titles, icons, annotations and schemas are no trouble to anybody': {
    method: 'tools/list',
    result: { tools: [NEWEST_TOOL] },
    ...SAME,
  },
};

const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
const form = (properties: Loose) => ({
  mode: 'form',
  message: '?',
  requestedSchema: { type: 'object', properties },
});
const sampling = (messages: Loose[], more: Loose = {}) => ({ messages, maxTokens: 1, ...more });
const said = (content: Loose) => ({ role: 'user', content });
const TITLED = {
  type: 'string',
  oneOf: [
    { const: 'r', title: 'Red' },
    { const: 'g', title: 'Green' },
  ],
};
const TOOLS = { tools: [{ name: 't', inputSchema: { type: 'object' } }] };

/** A question of the newest revision, and the params that are put to a client of each. */
interface QuestionRow {
  readonly method: string;
  readonly params: Loose;
  /**
   * The first revision whose clients can declare it to modern servers, which do not ask others; legacy ones are told what
   * the client declared, and may. A client that declares elicitation knows it, whatever its revision.
   */
  readonly since: string;
  asked(revision: string): Loose;
}

const QUESTIONS: Readonly<Record<string, QuestionRow>> = {
  'a form': {
    method: 'elicitation/create',
    params: form({ a: { type: 'string' } }),
    since: '2024-11-05',
    asked: () => form({ a: { type: 'string' } }),
  },
  'a choice whose values have titles': {
    method: 'elicitation/create',
    params: form({ colour: TITLED }),
    since: '2024-11-05',
    asked: () => form({ colour: TITLED }),
  },
  'a choice that has the older form already': {
    method: 'elicitation/create',
    params: form({ colour: { ...TITLED, enum: ['g'], enumNames: ['Green'] } }),
    since: '2024-11-05',
    asked: () => form({ colour: { ...TITLED, enum: ['g'], enumNames: ['Green'] } }),
  },
  'a choice of another type, or without words': {
    method: 'elicitation/create',
    params: form({ n: { type: 'string', oneOf: [{ const: 1 }] }, o: { type: 'string', oneOf: 'x' } }),
    since: '2024-11-05',
    asked: () => form({ n: { type: 'string', oneOf: [{ const: 1 }] }, o: { type: 'string', oneOf: 'x' } }),
  },
  'a page to visit': {
    method: 'elicitation/create',
    params: { mode: 'url', message: '?', url: 'https://example.com', elicitationId: 'e' },
    since: '2025-11-25',
    asked: () => ({ mode: 'url', message: '?', url: 'https://example.com' }),
  },
  'the model': {
    method: 'sampling/createMessage',
    params: sampling([said(text('a'))]),
    since: '2024-11-05',
    asked: () => sampling([said(text('a'))]),
  },
  'the model, with audio': {
    method: 'sampling/createMessage',
    params: sampling([said(AUDIO)]),
    since: '2024-11-05',
    asked: (revision) => sampling([said(revision < '2025-03-26' ? text('[audio audio/wav]') : AUDIO)]),
  },
  'the model, with several blocks in a message': {
    method: 'sampling/createMessage',
    params: sampling([said([text('a'), text('b')])]),
    since: '2024-11-05',
    asked: (revision) =>
      revision < '2025-11-25'
        ? sampling([said(text('a')), said(text('b'))])
        : sampling([said([text('a'), text('b')])]),
  },
  'the model, with tools': {
    method: 'sampling/createMessage',
    params: sampling([said(text('a'))], TOOLS),
    since: '2025-11-25',
    asked: () => sampling([said(text('a'))], TOOLS),
  },
};

const ANSWERS: Loose = {
  'elicitation/create': { action: 'decline' },
  'sampling/createMessage': { role: 'assistant', model: 'm', content: text('answer') },
};

const SERVER_CAPABILITIES = {
  LL: { tools: {}, prompts: {}, completions: {}, tasks: { list: {} } },
  LM: { tools: {}, prompts: {}, completions: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
};

describe.each(['LL', 'LM'] as const)('%s: of a server of the newest revision', (cell: Cell) => {
  let rig: Rig;
  const sessions = new Map<string, LegacySession>();
  beforeAll(async () => {
    rig = await startCell(cell, {
      script: { version: '2025-11-25', capabilities: SERVER_CAPABILITIES[cell] } as Loose,
    });
    for (const version of REVISIONS) {
      sessions.set(version, await legacy(rig.gateway.url(), { version, capabilities: CAPABILITIES }));
    }
  });
  afterAll(() => rig.close());
  const session = (revision: string) => sessions.get(revision) as LegacySession;

  describe.each(REVISIONS)('a client of %s', (revision) => {
    test('gets its revision, and the capabilities that it has words for', () => {
      const { protocolVersion, capabilities } = session(revision).initialize.json.result;
      expect(protocolVersion).toBe(revision);
      expect(Object.keys(capabilities.tasks ?? {}).length > 0).toBe(revision >= '2025-11-25');
      expect(capabilities).toMatchObject({ tools: {}, prompts: {}, completions: {} });
    });

    test.each(Object.entries(RESULTS))('%s', async (_what, { method, result, since, before }) => {
      const list = method === 'tools/list' ? ',"ttlMs":0,"cacheScope":"private"' : '';
      const own = JSON.stringify(result);
      rig.answer(method, cell === 'LM' ? own.replace(/\}$/, `${list}}`) : own);
      const expected = revision < since ? before : result;
      const { json } = await session(revision).request(method, { name: 'a' });
      // Servers of the other era do not say which tools run as tasks.
      for (const tool of json.result.tools ?? []) delete tool.execution;
      const { _meta, ...rest } = json.result;
      expect({ ...rest, ...(expected._meta && { _meta }) }).toEqual(expected);
    });

    test.each(Object.entries(QUESTIONS))('is asked %s as it can be', async (_what, row) => {
      const outcome = await ask(rig, session(revision), row);
      if (cell === 'LM' && revision < row.since) expect(outcome).toEqual({ asked: undefined, refused: true });
      else {
        const expected = row.asked(revision);
        const { elicitationId, ...params } = outcome.asked;
        expect(elicitationId === undefined).toBe(params.mode !== 'url');
        // Before 2025-11-25 there was no word for a form.
        const { mode, ...others } = expected;
        expect(params).toEqual(mode === 'form' && revision < '2025-11-25' ? others : expected);
      }
    });
  });
});

/** Lets the backend ask in the way of its era during a call, and the client answer. */
async function ask(
  rig: Rig,
  session: LegacySession,
  { method, params }: QuestionRow,
): Promise<{ asked: Loose; refused: Loose }> {
  if (rig.modernBackend) {
    rig.on('tools/call', (step) => {
      if (step.params.inputResponses !== undefined) return rig.result('{"content":[]}');
      const { elicitationId: _, ...bare } = params;
      return {
        result: {
          resultType: 'input_required',
          inputRequests: { q: { method, params: bare } },
          requestState: 's',
        },
      };
    });
  } else {
    rig.on('tools/call', async (step) => {
      const events = step.stream({ 'mcp-session-id': step.session ?? '' });
      const id = `q${step.id}`;
      events.event({ jsonrpc: '2.0', id, method, params });
      const answer = await until(
        () => rig.backend.requests.find(({ json }) => json?.id === id && !json.method),
        'the answer to the question',
      );
      const structuredContent = { code: answer.json.error?.code ?? 0 };
      events.event(step.frame({ result: { content: [text('asked')], structuredContent } }));
      events.end();
      return undefined;
    });
  }
  const stream = await session.open('tools/call', { name: 'ask' });
  let asked: Loose;
  const isJson = stream.headers['content-type'] === 'application/json';
  for (let event = isJson ? undefined : await stream.next(); event; ) {
    if (event.json.method === undefined) break;
    if (event.json.method === method) {
      asked = event.json.params;
      await session.post({ jsonrpc: '2.0', id: event.json.id, result: ANSWERS[method] });
    }
    event = await stream.next();
  }
  const { json } = await stream.done;
  return { asked, refused: json.result?.structuredContent?.code ?? json.result?.isError ?? json.error };
}

describe('LL: a client of', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('LL', { script: { version: '2025-11-25' } });
  });
  afterAll(() => rig.close());
  const VISITS = {
    code: -32042,
    message: 'Visit first',
    data: { elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://example.com', message: '?' }] },
  };

  test.each(REVISIONS)('%s is not told of pages that it cannot visit', async (version) => {
    const visits = version >= '2025-11-25';
    const session = await legacy(rig.gateway.url(), { version, capabilities: CAPABILITIES });
    rig.on('tools/call', (step) => {
      if (step.params.name === 'first') return { error: VISITS };
      const events = step.stream({ 'mcp-session-id': step.session ?? '' });
      const told = { method: 'notifications/elicitation/complete', params: { elicitationId: 'e' } };
      events.event({ jsonrpc: '2.0', ...told });
      events.event(step.frame({ result: { content: [] } }));
      events.end();
      return undefined;
    });
    const { json } = await session.request('tools/call', { name: 'first' });
    expect(json.error).toEqual({ ...VISITS, code: visits ? -32042 : -32603 });
    const { messages } = await session.request('tools/call', { name: 'then' });
    expect(messages.map(({ method }) => method)).toEqual(
      visits ? ['notifications/elicitation/complete'] : [],
    );
  });

  test.each(REVISIONS)('%s is asked nothing that it did not declare', async (version) => {
    const session = await legacy(rig.gateway.url(), { version, capabilities: { sampling: {} } });
    for (const [what, row] of Object.entries(QUESTIONS)) {
      const { asked, refused } = await ask(rig, session, row);
      const declared = row.method === 'sampling/createMessage' && row.since < '2025-11-25';
      expect([what, asked !== undefined, refused]).toEqual([what, declared, declared ? 0 : -32601]);
    }
  });

  test('2025-11-25 that cannot visit pages gets none either', async () => {
    const session = await legacy(rig.gateway.url(), { capabilities: { elicitation: {} } });
    rig.on('tools/call', () => ({ error: VISITS }));
    expect((await session.request('tools/call', { name: 'a' })).json.error.code).toBe(-32603);
  });
});

describe.each(REVISIONS)('LL: the answer of a newer client to a server of %s', (version) => {
  test.each(['the call', 'the session'])(
    'has the blocks that it knows, on the stream of %s',
    async (where) => {
      const rig = await startCell('LL', { script: { version }, handshake: { capabilities: CAPABILITIES } });
      try {
        const session = await rig.session();
        const question = { jsonrpc: '2.0', id: 'q', method: 'sampling/createMessage', params: sampling([]) };
        const listening = await session.listen();
        rig.on('tools/call', async (step) => {
          const events = step.stream({ 'mcp-session-id': step.session ?? '' });
          const getStream = await until(() => rig.backend.streams.at(-1), 'the stream of the backend');
          (where === 'the call' ? events : getStream.stream).event(question);
          await until(() => rig.backend.requests.find(({ json }) => json?.id === 'q'), 'the answer');
          events.event(step.frame({ result: { content: [] } }));
          events.end();
          return undefined;
        });
        const stream = session.open('tools/call', { name: 'ask' });
        await (where === 'the call' ? await stream : listening).next();
        const content = [text('one'), text('two')];
        const result = { role: 'assistant', model: 'm', content };
        await session.post({ jsonrpc: '2.0', id: 'q', result });
        await (await stream).done;
        const answer = rig.backend.requests.find(({ json }) => json?.id === 'q');
        expect(answer?.json.result.content).toEqual(version < '2025-11-25' ? text('one\ntwo') : content);
        listening.abort();
      } finally {
        await rig.close();
      }
    },
  );
});

describe.each(['LL', 'ML'] as const)('%s: to a server of', (cell) => {
  test.each(REVISIONS)('%s nothing is said that it has no words for', async (version) => {
    const rig = await startCell(cell, { script: { version, capabilities: { completions: {} } } });
    try {
      rig.answer('completion/complete', '{"completion":{"values":[]}}');
      const argument = { name: 'a', value: 'b' };
      const context = { arguments: { c: 'd' } };
      const ref = { type: 'ref/prompt', name: 'p' };
      const { json } = await rig.call('completion/complete', { ref, argument, context });
      expect(json.result.completion).toEqual({ values: [] });
      const [sent] = rig.backend.received('completion/complete');
      expect(sent?.headers['mcp-protocol-version']).toBe(version);
      const { _meta, ...params } = sent?.json.params ?? {};
      expect(params).toEqual(version < '2025-06-18' ? { ref, argument } : { ref, argument, context });
    } finally {
      await rig.close();
    }
  });
});
