import { type ClientKind, type ConnectOptions, connect, type TestClient } from '../support/clients.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import type { Loose } from '../support/net.js';
import type { Peer } from '../support/peers/index.js';
import {
  type LegacySession,
  type ModernOptions,
  modern,
  type RawResponse,
  type RawStream,
} from '../support/raw.js';
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

/** `inputResponses` for an `input_required` result, as a helpful person gives them. */
export function responsesTo(result: Loose, given: Answers = {}): Record<string, Loose> {
  const answers = { ...HELPFUL, ...given };
  const entries = Object.entries<Loose>(result.inputRequests ?? {}).map(([key, { method, params }]) => {
    if (method === 'sampling/createMessage') return [key, answers.sampling(params, 0)];
    if (method === 'roots/list') return [key, answers.roots(params, 0)];
    return [key, params.mode === 'url' ? answers.url(params, 0) : answers.form(params, 0)];
  });
  return Object.fromEntries(entries);
}

/**
 * A modern client by hand: the call, then as many retries as there are further options, each with answers to all that was
 * asked before. Gives the response to each try.
 */
export async function rawRounds(
  url: string,
  params: Loose,
  tries: ModernOptions[],
  given: Answers = {},
): Promise<RawResponse[]> {
  const responses: RawResponse[] = [];
  let retry: Loose = {};
  for (const options of tries) {
    const response = await modern(
      url,
      'tools/call',
      { ...params, ...retry },
      { capabilities: ALL_CAPABILITIES, ...options },
    );
    responses.push(response);
    const result = response.json?.result;
    if (result?.resultType !== 'input_required') break;
    retry = { inputResponses: responsesTo(result, given), requestState: result.requestState };
  }
  return responses;
}

/**
 * A legacy client by hand: answers what is asked on a stream until it ends, in the way of a helpful person, and gives all
 * that came on it.
 */
export async function answerAll(
  session: LegacySession,
  stream: RawStream,
  given: Answers = {},
): Promise<Loose[]> {
  const seen: Loose[] = [];
  for (;;) {
    const event = await stream.next().catch(() => undefined);
    if (event === undefined) return stream.events.length > 0 ? seen : [(await stream.done).json];
    const message = event.json;
    if (message === undefined) continue;
    seen.push(message);
    if (message.id === undefined || message.method === undefined) continue;
    const { answer } = responsesTo({ inputRequests: { answer: message } }, given);
    await session.post({ jsonrpc: '2.0', id: message.id, result: answer });
  }
}

/** The text of a tool result's first block. */
export const textOf = (result: Loose): string => result.content[0].text;
