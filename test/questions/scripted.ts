import type { BackendStream } from '../support/backend.js';
import {
  type LegacyScript,
  type ScriptedBackend,
  type Step,
  startLegacyBackend,
  startModernBackend,
} from '../support/misbehave.js';
import { type Loose, sleep, until } from '../support/net.js';
import {
  type LegacySession,
  legacy,
  type ModernOptions,
  modern,
  openModern,
  type RawResponse,
  type RawStream,
} from '../support/raw.js';

/** What a client declares that can be asked everything. */
export const ASKABLE = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };

export const text = (value: string) => ({ content: [{ type: 'text', text: value }] });

/** Params of a form elicitation with one text field, `value`. */
export function form(message: string): Loose {
  const requestedSchema = {
    type: 'object',
    properties: { value: { type: 'string' } },
    required: ['value'],
  };
  return { message, requestedSchema };
}

export const accept = (value: string) => ({ action: 'accept', content: { value } });

/** Params of a sampling request for one line of text. */
export function prompt(message: string): Loose {
  return { messages: [{ role: 'user', content: { type: 'text', text: message } }], maxTokens: 100 };
}

export function sampled(value: string): Loose {
  return { role: 'assistant', content: { type: 'text', text: value }, model: 'test-model' };
}

/** An answer to a question, as it reached a backend. */
export interface ReceivedAnswer {
  readonly session: string | undefined;
  readonly authorization: string | undefined;
  /** The whole message. */
  readonly json: Loose;
}

/** A tool of a legacy backend while it runs: its answer is an event stream. */
export interface Running {
  readonly args: Loose;
  readonly params: Loose;
  readonly session: string | undefined;
  readonly authorization: string | undefined;
  /** JSON-RPC id of the call. */
  readonly id: Loose;
  readonly stream: BackendStream;
  /** Puts a question on the stream of the call and waits for the whole answer. */
  ask(method: string, params: Loose, id?: unknown): Promise<Loose>;
  /** As `ask`, but on the session's GET stream. */
  push(method: string, params: Loose, id?: unknown): Promise<Loose>;
  notify(method: string, params: Loose): void;
  /** Resolves with the params when the call is cancelled. */
  cancelled(): Promise<Loose>;
  /** The form elicitation's value, or its action where it was not accepted, or the error's message. */
  elicit(message: string): Promise<string>;
}

/** Gives the result of the tool; undefined where it deals with the answer itself. */
export type Tool = (call: Running) => Promise<Loose | undefined>;

export interface AskingBackend extends ScriptedBackend {
  /** Answers to questions, in the order in which they came. */
  readonly answers: ReceivedAnswer[];
  /** Params of `notifications/cancelled`, each with its session. */
  readonly cancels: { session: string | undefined; params: Loose }[];
  /** Calls begun. */
  readonly calls: Running[];
  /** Replaces the tool. */
  tool(run: Tool): void;
}

/** A legacy backend whose `tools/call` asks: by default one form elicitation, whose value it returns. */
export async function startAskingBackend(script: LegacyScript = {}, tool?: Tool): Promise<AskingBackend> {
  const waiting = new Map<string, (answer: Loose) => void>();
  const waitingForCancel = new Map<string, (params: Loose) => void>();
  const nextIds = new Map<string, number>();
  const answers: ReceivedAnswer[] = [];
  const cancels: AskingBackend['cancels'] = [];
  const calls: Running[] = [];
  let run: Tool = tool ?? (async ({ args, elicit }) => text(await elicit(`Value for ${args?.key}?`)));
  const key = (session: string | undefined, id: unknown) => `${session} ${JSON.stringify(id)}`;

  function sendQuestion(session: string | undefined, stream: BackendStream, question: Loose): Promise<Loose> {
    return new Promise((resolve) => {
      waiting.set(key(session, question.id), resolve);
      stream.event({ jsonrpc: '2.0', ...question });
    });
  }

  function nextId(session: string | undefined): number {
    const id = nextIds.get(session ?? '') ?? 0;
    nextIds.set(session ?? '', id + 1);
    return id;
  }

  function begin(step: Step): Running {
    const { session, params } = step;
    const stream = step.stream(session === undefined ? {} : { 'mcp-session-id': session });
    const call: Running = {
      args: params?.arguments,
      params,
      session,
      authorization: step.headers.authorization,
      id: step.id,
      stream,
      ask: (method, asked, id = nextId(session)) =>
        sendQuestion(session, stream, { id, method, params: asked }),
      async push(method, asked, id = nextId(session)) {
        const getStream = await until(
          () => backend.streams.find((one) => one.session === session && !one.stream.closed),
          'the GET stream of the session',
        );
        return sendQuestion(session, getStream.stream, { id, method, params: asked });
      },
      notify: (method, told) => stream.event({ jsonrpc: '2.0', method, params: told }),
      cancelled: () => new Promise((resolve) => waitingForCancel.set(key(session, step.id), resolve)),
      async elicit(message) {
        const { result, error } = await call.ask('elicitation/create', form(message));
        return error?.message ?? (result.action === 'accept' ? result.content.value : result.action);
      },
    };
    calls.push(call);
    return call;
  }

  const backend = await startLegacyBackend({
    ...script,
    intercept(exchange) {
      const { json, method } = exchange;
      const session = exchange.headers['mcp-session-id'] as string | undefined;
      if (method === 'POST' && json?.method === undefined && (json?.result ?? json?.error) !== undefined) {
        answers.push({ session, authorization: exchange.headers.authorization, json });
        waiting.get(key(session, json.id))?.(json);
        waiting.delete(key(session, json.id));
      }
      if (json?.method === 'notifications/cancelled') {
        cancels.push({ session, params: json.params });
        waitingForCancel.get(key(session, json.params?.requestId))?.(json.params);
      }
      return script.intercept?.(exchange) ?? false;
    },
    on: {
      'tools/call': async (step) => {
        const call = begin(step);
        const result = await run(call);
        if (result === undefined) return undefined;
        call.stream.event(step.frame({ result }));
        call.stream.end();
        return undefined;
      },
      ...script.on,
    },
  });
  return {
    ...backend,
    answers,
    cancels,
    calls,
    tool(replacement) {
      run = replacement;
    },
  };
}

export type Round = (params: Loose, step: Step) => Loose | Promise<Loose>;

/** A modern backend whose `tools/call` gives what `round` makes of the params; `asking` makes a result that asks. */
export async function startRoundsBackend(round: Round): Promise<ScriptedBackend> {
  return startModernBackend({
    on: {
      'tools/call': async (step) => {
        const result = await round(step.params, step);
        return result === undefined ? undefined : { result };
      },
    },
  });
}

/** The result of a modern server that needs input; undefined leaves a member out. */
export function asking(inputRequests: Loose, requestState?: unknown): Loose {
  return {
    resultType: 'input_required',
    ...(inputRequests === undefined ? {} : { inputRequests }),
    ...(requestState === undefined ? {} : { requestState }),
  };
}

export const done = (value: string) => ({ resultType: 'complete', ...text(value) });

export const elicitation = (message: string) => ({
  method: 'elicitation/create',
  params: { mode: 'form', ...form(message) },
});

/** One call of a modern client's tool, tried again as its server asks. */
export class ModernCaller {
  readonly url: string;
  readonly options: ModernOptions;
  readonly params: Loose;

  constructor(url: string, args: Loose, options: ModernOptions = {}) {
    this.url = url;
    this.options = { capabilities: ASKABLE, ...options };
    this.params = { name: 'ask', arguments: args };
  }

  start(): Promise<RawResponse> {
    return this.send(this.params);
  }

  /** Calls, and expects to be asked. */
  async asked(): Promise<Asked> {
    return readQuestions(await this.start());
  }

  retry(state: unknown, responses?: Loose, options: ModernOptions = {}): Promise<RawResponse> {
    return this.send(retryOf(this.params, state, responses), options);
  }

  open(state: unknown, responses?: Loose, options: ModernOptions = {}): Promise<RawStream> {
    return openModern(this.url, 'tools/call', retryOf(this.params, state, responses), {
      ...this.options,
      ...options,
    });
  }

  send(params: Loose, options: ModernOptions = {}): Promise<RawResponse> {
    return modern(this.url, 'tools/call', params, { ...this.options, ...options });
  }
}

function retryOf(params: Loose, state: unknown, responses: Loose): Loose {
  return {
    ...params,
    ...(state === undefined ? {} : { requestState: state }),
    ...(responses === undefined ? {} : { inputResponses: responses }),
  };
}

/** The questions of one round, as a modern client has them. */
export interface Asked {
  readonly response: RawResponse;
  readonly state: string;
  readonly requests: Loose;
  readonly keys: readonly string[];
  readonly key: string;
}

export function readQuestions(response: RawResponse): Asked {
  const { result } = response.json ?? {};
  if (result?.resultType !== 'input_required') throw new Error(`no questions: ${response.text}`);
  const keys = Object.keys(result.inputRequests);
  return {
    response,
    state: result.requestState,
    requests: result.inputRequests,
    keys,
    key: keys[0] as string,
  };
}

export const bearer = (name: string) => ({ headers: { authorization: `Bearer ${name}` } });

/** What a legacy client reads from the stream of its call. */
export async function questionOn(stream: RawStream, timeoutMs?: number): Promise<Loose> {
  const event = await stream.find(({ json }) => json?.method !== undefined && 'id' in json, timeoutMs);
  return event.json;
}

export function answerTo(session: LegacySession, question: Loose, result: Loose): Promise<RawResponse> {
  return session.post({ jsonrpc: '2.0', id: question.id, result });
}

export function legacyClient(
  url: string,
  options: Parameters<typeof legacy>[1] = {},
): Promise<LegacySession> {
  return legacy(url, { capabilities: ASKABLE, ...options });
}

/** Requests that reach a backend while `work` is done, and shortly after. */
export async function trafficDuring(
  backend: ScriptedBackend,
  work: () => Promise<void>,
): Promise<readonly string[]> {
  const before = backend.requests.length;
  await work();
  await sleep(40);
  return backend.requests.slice(before).map(({ method, text: body }) => `${method} ${body}`);
}

/** The numbers from 0 in a random order. */
export function shuffled(count: number): number[] {
  const order = Array.from({ length: count }, (_, index) => index);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return order;
}

/** The text of the tool's result in a JSON-RPC response. */
export const textIn = (message: Loose): string => message.result.content[0].text;

/** The text of the tool's result in an HTTP response. */
export const toolText = ({ json }: Pick<RawResponse, 'json'>): string => textIn(json);

/** Every item in turn, all at the same time. */
export function all<T, R>(items: Iterable<T>, work: (item: T, index: number) => Promise<R>): Promise<R[]> {
  return Promise.all([...items].map(work));
}
