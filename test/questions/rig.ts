import { type ClientKind, type ConnectOptions, connect, type TestClient } from '../support/clients.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import type { Loose } from '../support/net.js';
import type { Peer } from '../support/peers/index.js';
import { type Recording, record } from '../support/tap.js';

/** What a client that can do everything declares. */
export const ALL_CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: {},
};

type AnswerTo = (params: Loose, earlier: number) => Loose | Promise<Loose>;

/** Answers by method; those of elicitations by mode. */
export interface Answers {
  readonly form?: AnswerTo;
  readonly url?: AnswerTo;
  readonly sampling?: AnswerTo;
  readonly roots?: AnswerTo;
}

export const MODEL = { model: 'test-model', role: 'assistant', stopReason: 'endTurn' };
export const ROOTS = { roots: [{ uri: 'file:///work', name: 'Work' }] };

const HELPFUL: Required<Answers> = {
  form: ({ message, requestedSchema }) => {
    const keys = Object.keys(requestedSchema.properties);
    return { action: 'accept', content: Object.fromEntries(keys.map((key) => [key, `to: ${message}`])) };
  },
  url: () => ({ action: 'accept' }),
  sampling: ({ messages }) => ({
    ...MODEL,
    content: { type: 'text', text: `${messages.length} heard` },
  }),
  roots: () => ROOTS,
};

/** Someone at the client who is asked things: handlers for an SDK client, and what was asked. */
export function person(given: Answers = {}) {
  const answers = { ...HELPFUL, ...given };
  const asked: { method: string; params: Loose }[] = [];
  const handle = (method: string, answer: (params: Loose) => AnswerTo) => async (params: Loose) => {
    const earlier = asked.length;
    asked.push({ method, params });
    return answer(params)(params, earlier);
  };
  const handlers: NonNullable<ConnectOptions['handlers']> = {
    'elicitation/create': handle('elicitation/create', ({ mode }) =>
      mode === 'url' ? answers.url : answers.form,
    ),
    'sampling/createMessage': handle('sampling/createMessage', () => answers.sampling),
    'roots/list': handle('roots/list', () => answers.roots),
  };
  return { asked, handlers };
}

export interface Rig {
  readonly peer: Peer;
  readonly gateway: TestGateway;
  readonly recording: Recording;
  /** The route's URL, with a tap before it. */
  readonly url: string;
  /** Connects a client that declares everything unless told otherwise; closed with the rig. */
  connect(kind: ClientKind, options?: ConnectOptions): Promise<TestClient>;
  close(): Promise<void>;
}

/** A peer behind a gateway with one route, and a tap on either side. */
export async function startRig(
  start: () => Promise<Peer>,
  route: Record<string, Loose> = {},
  config: Record<string, Loose> = {},
): Promise<Rig> {
  const recording = record();
  const parts: { close(): Promise<unknown> }[] = [];
  const opened = async <T extends { close(): Promise<unknown> }>(part: Promise<T>): Promise<T> => {
    parts.unshift(await part);
    return part;
  };
  const peer = await opened(start());
  const back = await opened(recording.backend(peer.url));
  const { backend, ...rest } = route;
  const gateway = await opened(
    startGateway({ '/mcp': { backend: { url: back.url, ...backend }, ...rest } }, config),
  );
  const front = await opened(recording.client(gateway.url()));
  return {
    peer,
    gateway,
    recording,
    url: front.url,
    async connect(kind, options = {}) {
      const client = await connect(kind, front.url, { capabilities: ALL_CAPABILITIES, ...options });
      parts.unshift(client);
      return client;
    },
    async close() {
      for (const part of parts) await part.close();
    },
  };
}

/** The text of a tool result's first block. */
export const textOf = (result: Loose): string => result.content[0].text;
