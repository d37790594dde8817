import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLIENT_KINDS } from '../support/clients.js';
import { type Loose, until } from '../support/net.js';
import { startEverything } from '../support/peers/index.js';
import { ALL_CAPABILITIES, MODEL, person, type Rig, ROOTS, startRig, textOf } from './rig.js';

const PAGE = 'https://example.com/pay?order=1';
const PREREQUISITE = 'https://modelcontextprotocol.io';
const FORM = { name: 'Ada Lovelace', check: true, firstLine: 'It was a dark night.', integer: 7 };
const failure = (call: Promise<unknown>): Promise<Loose> =>
  call.then(
    () => expect.fail('went well'),
    (error: unknown) => error,
  );

describe('server-everything', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(startEverything, { questions: { roots: 'ask' } });
  });
  afterAll(() => rig?.close());

  describe.each(CLIENT_KINDS)('and client %s', (kind) => {
    const modern = kind === 'v2 auto' || kind === 'v2 pin';

    test.each([
      [ALL_CAPABILITIES, ['elicitation-request', 'url-elicitation', 'sampling-request']],
      [{ elicitation: {} }, ['elicitation-request']],
      [{ elicitation: { url: {} } }, ['elicitation-request', 'url-elicitation']],
      [{ sampling: {} }, ['sampling-request']],
      [{}, []],
    ])('shows to %j the tools that ask for no more than that', async (capabilities, asking) => {
      const client = await rig.connect(kind, { capabilities });
      const names = (await client.listTools()).map(({ name }) => name);
      expect(names.filter((name) => /^trigger-.*-(request|elicitation)$/.test(name)).sort()).toEqual(
        asking.map((name) => `trigger-${name}`).sort(),
      );
      expect(names.includes('get-roots-list')).toBe('roots' in capabilities);
    });

    test.each([
      ['accept', { action: 'accept', content: FORM }, /User provided the requested information/],
      ['decline', { action: 'decline' }, /User declined/],
      ['cancel', { action: 'cancel' }, /User cancelled/],
    ])('carries a form with every kind of field, and its answer %s', async (_action, answer, said) => {
      const someone = person({ form: () => answer });
      const client = await rig.connect(kind, { handlers: someone.handlers });
      const result = await client.callTool('trigger-elicitation-request');
      expect(textOf(result)).toMatch(said);
      expect(JSON.parse(result.content.at(-1).text.replace(/^\s*Raw result: /, ''))).toEqual(answer);
      const forms = someone.asked.filter(({ method }) => method === 'elicitation/create');
      expect(forms).toHaveLength(1);
      expect(Object.keys(forms[0]?.params.requestedSchema.properties).length).toBeGreaterThan(8);
    });

    test('carries a request to the model, and what it says', async () => {
      const someone = person({
        sampling: ({ messages }) => ({
          ...MODEL,
          content: { type: 'text', text: `heard: ${messages[0].content.text}` },
        }),
      });
      const client = await rig.connect(kind, { handlers: someone.handlers });
      const result = await client.callTool('trigger-sampling-request', { prompt: 'grüße', maxTokens: 5 });
      expect(textOf(result)).toContain('heard: Resource trigger-sampling-request context: grüße');
      expect(someone.asked).toContainEqual({
        method: 'sampling/createMessage',
        params: expect.objectContaining({ maxTokens: 5, temperature: 0.7 }),
      });
    });

    test('sends to a page by a question', async () => {
      const someone = person();
      const client = await rig.connect(kind, { handlers: someone.handlers });
      const result = await client.callTool('trigger-url-elicitation', { url: PAGE, elicitationId: 'own-id' });
      expect(textOf(result)).toContain('User completed the URL elicitation flow');
      const visits = someone.asked.filter(({ params }) => params?.mode === 'url');
      expect(visits.map(({ params }) => params.url)).toEqual([PAGE]);
      // A modern client has no use for the id, and its schema none.
      expect(visits[0]?.params.elicitationId).toBe(modern ? undefined : 'own-id');
    });

    test('sends to a page by an error, and goes on once it was visited', async () => {
      const someone = person();
      const client = await rig.connect(kind, { handlers: someone.handlers });
      const call = () => client.callTool('trigger-url-elicitation', { url: PAGE, errorPath: true });
      if (!modern) {
        const error = await failure(call());
        expect(error.code).toBe(-32042);
        expect(error.data.elicitations).toEqual([
          expect.objectContaining({ mode: 'url', url: PREREQUISITE, elicitationId: expect.any(String) }),
        ]);
      }
      expect(textOf(await call())).toContain('User completed the URL elicitation flow');
      // On a session of the pool the server may ask for the roots meanwhile.
      const pages = someone.asked.flatMap(({ params }) => params?.url ?? []);
      expect(pages).toEqual(modern ? [PREREQUISITE, PAGE] : [PAGE]);
    });

    test('does not go on when the page of an error was not visited', async () => {
      const someone = person({ url: () => ({ action: 'decline' }) });
      const client = await rig.connect(kind, { handlers: someone.handlers });
      const args = { url: `${PAGE}&by=${encodeURIComponent(kind)}`, errorPath: true };
      const error = await failure(client.callTool('trigger-url-elicitation', args));
      expect(error.code).toBe(modern ? -32602 : -32042);
      const pages = someone.asked.flatMap(({ params }) => params?.url ?? []);
      expect(pages).toEqual(modern ? [PREREQUISITE] : []);
    });

    test('tells the roots', async () => {
      const someone = person();
      const client = await rig.connect(kind, { handlers: someone.handlers, name: `Rooted ${kind}` });
      const text = await until(async () => {
        const result = await client.callTool('get-roots-list');
        return textOf(result).includes('file:///work') && textOf(result);
      }, 'the roots');
      expect(text).toContain(ROOTS.roots[0]?.name);
      expect(someone.asked.map(({ method }) => method)).toContain('roots/list');
    });
  });

  test('is shown only frames of the gateway that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});
