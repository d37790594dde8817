import type { IncomingHttpHeaders } from 'node:http';
import { createParser } from 'eventsource-parser';
import type { Loose } from './net.js';
import { type Direction, isModern } from './schema.js';

/** Who put a frame on the wire. */
export type Party = 'client' | 'gateway' | 'backend';

export interface TappedFrame {
  readonly by: Party;
  readonly direction: Direction;
  readonly revision: string;
  readonly message: Loose;
  readonly requestMethod: string | undefined;
}

export interface TappedExchange {
  /** Which link it was seen on. */
  readonly side: 'client' | 'backend';
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Loose;
  status: number;
  responseHeaders: IncomingHttpHeaders;
}

/** What a tap knows of a legacy session. */
export interface Session {
  revision: string;
  /** Requests in flight by direction and id, for the methods of their answers. */
  readonly pending: Map<string, string>;
}

const pendingKey = (direction: Direction, id: unknown) => `${direction} ${JSON.stringify(id)}`;

/** A value of JSON text, or undefined. */
export function parseJson(text: string): Loose {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface ExchangeView {
  readonly revision: string;
  readonly session: Session;
  /** Methods of the requests in the body, by JSON text of the id. */
  readonly asked: ReadonlyMap<string, string>;
  readonly progressTokens: ReadonlySet<string>;
}

type See = (frame: Omit<TappedFrame, 'by'>) => void;

const messagesOf = (body: Loose): Loose[] => (Array.isArray(body) ? body : body === undefined ? [] : [body]);

/** Checks the request side of an exchange and keeps what is needed to understand its answer. */
export function viewRequest(
  { headers, body, method }: TappedExchange,
  origin: string,
  sessions: Map<string, Session>,
  see: See,
  complain: (problem: string) => void,
): ExchangeView {
  const messages = messagesOf(body);
  const claim = messages[0]?.params?._meta?.['io.modelcontextprotocol/protocolVersion'];
  const version = headers['mcp-protocol-version'];
  const initialize = messages.find((message) => message?.method === 'initialize');
  const known = sessions.get(String(headers['mcp-session-id']));
  const revision: string =
    claim ?? known?.revision ?? version ?? initialize?.params?.protocolVersion ?? '2025-03-26';
  const session = known ?? { revision, pending: new Map() };
  const asked = new Map<string, string>();
  const progressTokens = new Set<string>();
  for (const message of messages) {
    const answers =
      message?.method === undefined ? session.pending.get(pendingKey('s2c', message?.id)) : undefined;
    see({ direction: 'c2s', revision, message, requestMethod: answers });
    if (message?.method === undefined || message.id === undefined) continue;
    asked.set(JSON.stringify(message.id), message.method);
    session.pending.set(pendingKey('c2s', message.id), message.method);
    const token = message.params?._meta?.progressToken;
    if (token !== undefined) progressTokens.add(JSON.stringify(token));
  }
  const where = `${method} ${messages[0]?.method ?? ''}`.trim();
  for (const problem of headerProblems(headers, messages, claim, revision, new URL(origin).host)) {
    complain(`${where}: ${problem}`);
  }
  return { revision, session, asked, progressTokens };
}

/** Faults in the headers of a request, by the Streamable HTTP transport of its revision. */
function headerProblems(
  headers: IncomingHttpHeaders,
  messages: Loose[],
  claim: string | undefined,
  revision: string,
  host: string,
): string[] {
  const problems: string[] = [];
  const message = messages[0];
  if (headers.host !== host) problems.push(`Host is ${headers.host}`);
  if (message && !/^application\/json\b/.test(headers['content-type'] ?? ''))
    problems.push('wrong content type');
  if (message && !/application\/json.*text\/event-stream/.test(headers.accept ?? ''))
    problems.push('wrong Accept');
  const modernHeaders = Object.keys(headers).filter((name) => /^mcp-(method|name|param-.*)$/.test(name));
  if (!isModern(revision)) {
    if (modernHeaders.length > 0) problems.push(`legacy request with ${modernHeaders}`);
    if (message?.method === 'initialize') {
      for (const name of ['mcp-session-id', 'mcp-protocol-version']) {
        if (headers[name] !== undefined) problems.push(`initialize with ${name}`);
      }
    }
    return problems;
  }
  if (headers['mcp-session-id'] !== undefined) problems.push('modern request with Mcp-Session-Id');
  if (claim !== undefined && headers['mcp-protocol-version'] !== claim)
    problems.push('version header differs');
  if (message?.id === undefined) return problems;
  if (headers['mcp-method'] !== message.method) problems.push(`Mcp-Method is ${headers['mcp-method']}`);
  const named: Record<string, string> = {
    'tools/call': 'name',
    'prompts/get': 'name',
    'resources/read': 'uri',
  };
  const member = named[message.method];
  const name = member === undefined ? undefined : message.params?.[member];
  if (name !== undefined && decoded(headers['mcp-name']) !== name) {
    problems.push(`Mcp-Name is ${headers['mcp-name']} for ${name}`);
  }
  return problems;
}

/** A header value out of its base64 sentinel. */
function decoded(value: string | string[] | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString('utf8');
}

/** Reads the answer of an exchange frame by frame. */
export function viewAnswer(
  exchange: TappedExchange,
  view: ExchangeView,
  sessions: Map<string, Session>,
  see: See,
  complain: (direction: Direction, problem: string) => void,
) {
  const { status, responseHeaders } = exchange;
  const modern = isModern(view.revision);
  const streaming = String(responseHeaders['content-type'] ?? '').startsWith('text/event-stream');
  const sid = responseHeaders['mcp-session-id'];
  const asks = [...view.asked.values()].join(', ');
  if (modern && sid !== undefined) complain('s2c', `${asks}: modern answer with Mcp-Session-Id`);
  const chunks: Buffer[] = [];
  let answered = 0;

  function frame(message: Loose) {
    if (message === undefined) return;
    const isAnswer = message?.method === undefined;
    const key = JSON.stringify(message?.id);
    const requestMethod = isAnswer
      ? (view.asked.get(key) ?? view.session.pending.get(pendingKey('c2s', message?.id)))
      : undefined;
    if (requestMethod === 'initialize' && message.result?.protocolVersion) {
      view.session.revision = message.result.protocolVersion;
      if (typeof sid === 'string') sessions.set(sid, view.session);
    }
    const revision = modern ? view.revision : view.session.revision;
    see({ direction: 's2c', revision, message, requestMethod });
    if (isAnswer) {
      answered += 1;
      if (view.asked.size > 0 && !view.asked.has(key)) complain('s2c', `${asks}: answer with id ${key}`);
      const code = message.error?.code;
      if (modern && !streaming && [-32020, -32021, -32022].includes(code) && status !== 400) {
        complain('s2c', `${asks}: error ${code} with status ${status}`);
      }
      return;
    }
    if (message.id !== undefined) view.session.pending.set(pendingKey('s2c', message.id), message.method);
    if (message.method === 'notifications/progress' && view.asked.size > 0) {
      const token = JSON.stringify(message.params?.progressToken);
      if (!view.progressTokens.has(token)) complain('s2c', `${asks}: progress with token ${token}`);
    }
    if (asks === 'subscriptions/listen') {
      const subscription = message.params?._meta?.['io.modelcontextprotocol/subscriptionId'];
      if (!view.asked.has(JSON.stringify(subscription))) complain('s2c', `subscriptionId is ${subscription}`);
    }
  }

  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent({ id, data }) {
      if (modern && id !== undefined) complain('s2c', `${asks}: modern event with id`);
      if (data === '') return;
      const body = parseJson(data);
      if (body === undefined) complain('s2c', `${asks}: event that is not JSON: ${data.slice(0, 80)}`);
      for (const message of messagesOf(body)) frame(message);
    },
    onRetry: () => modern && complain('s2c', `${asks}: modern stream with retry`),
  });
  return {
    data(chunk: Buffer) {
      if (streaming) parser.feed(decoder.decode(chunk, { stream: true }));
      else chunks.push(chunk);
    },
    end() {
      if (!streaming)
        for (const message of messagesOf(parseJson(Buffer.concat(chunks).toString('utf8')))) frame(message);
      const cancelled = streaming && answered === 0;
      if (view.asked.size > 0 && answered === 0 && status === 200 && !cancelled) {
        complain('s2c', `${asks}: no answer`);
      }
    },
  };
}
