import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Host, type Loose, listen, type ReceivedRequest, recordRequest } from '../support/net.js';

/** One session of a {@link SseBackend}. */
export interface ScriptedSession {
  readonly id: string;
  readonly res: ServerResponse;
  /** Writes bytes to the stream. */
  write(text: string | Buffer): void;
  /** Writes a message to the stream. */
  send(message: Loose): void;
  end(): void;
}

/** A message that was posted, and how to answer. */
export interface Posted {
  readonly session: ScriptedSession;
  readonly message: Loose;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Answers the POST. */
  accept(status?: number, body?: string, headers?: Record<string, string>): void;
  /** Sends a response on the stream. */
  reply(result: Loose): void;
}

export interface SseScript {
  /** Answers the GET instead of a stream; true when it did. */
  get?(request: IncomingMessage, response: ServerResponse): boolean;
  /** Text of the stream's beginning; default an `endpoint` event with an absolute path. */
  begin?(session: ScriptedSession, origin: string): string;
  /** Headers of the stream. */
  headers?: Record<string, string>;
  /** Answers a message instead of the script; true when it did. */
  post?(posted: Posted): boolean | undefined;
  /** Results by method. */
  results?: Record<string, (message: Loose) => Loose>;
  capabilities?: Loose;
  revision?: string;
}

export interface SseBackend {
  readonly url: string;
  readonly origin: string;
  readonly requests: ReceivedRequest[];
  readonly sessions: ScriptedSession[];
  /** Open streams. */
  open(): ScriptedSession[];
  /** Messages by method. */
  received(method: string): ReceivedRequest[];
  restart(): Promise<void>;
  close(): Promise<void>;
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
};

/** An HTTP+SSE server by hand: GET on any path but that of messages opens a stream. */
export async function startSseBackend(script: SseScript = {}, path = '/sse'): Promise<SseBackend> {
  const requests: ReceivedRequest[] = [];
  const sessions: ScriptedSession[] = [];
  let host: Host;
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    requests.push(recordRequest(request, response));
    if (request.method === 'GET') {
      if (script.get?.(request, response)) return;
      const session: ScriptedSession = {
        id: randomUUID(),
        res: response,
        write: (text) => void response.write(text),
        send: (message) => session.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`),
        end: () => void response.end(),
      };
      sessions.push(session);
      response.writeHead(200, { 'content-type': 'text/event-stream', ...script.headers });
      const usual = `event: endpoint\ndata: /messages?sid=${session.id}\n\n`;
      response.write(script.begin?.(session, host.origin) ?? usual);
      return;
    }
    const sid = new URL(request.url ?? '/', host.origin).searchParams.get('sid');
    const session = sessions.find(({ id, res }) => id === sid && !res.destroyed && !res.writableEnded);
    if (request.method !== 'POST' || session === undefined) {
      response.writeHead(session === undefined && sid !== null ? 404 : 405).end('no such session');
      return;
    }
    const message = JSON.parse(await bodyOf(request));
    const posted: Posted = {
      session,
      message,
      request,
      response,
      accept: (status = 202, body = 'Accepted', headers = {}) => {
        response.writeHead(status, headers).end(body);
      },
      reply: (result) => session.send({ jsonrpc: '2.0', id: message.id, result }),
    };
    if (script.post?.(posted)) return;
    posted.accept();
    if (message.id === undefined || message.method === undefined) return;
    if (message.method === 'initialize') {
      posted.reply({
        protocolVersion: script.revision ?? '2024-11-05',
        capabilities: script.capabilities ?? { tools: {} },
        serverInfo: { name: 'by hand', version: '1' },
      });
    } else posted.reply(script.results?.[message.method]?.(message) ?? {});
  };
  host = await listen((request, response) => void handle(request, response).catch(() => response.destroy()));
  return {
    url: host.origin + path,
    origin: host.origin,
    requests,
    sessions,
    open: () => sessions.filter(({ res }) => !res.destroyed && !res.writableEnded),
    received: (method) => requests.filter(({ json }) => json?.method === method),
    async restart() {
      await host.stop();
      await host.start();
    },
    close: () => host.stop(),
  };
}

/** A list of one tool. */
export const TOOLS = () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] });
/** What the tool says. */
export const SAID = (text = 'done') => ({ content: [{ type: 'text', text }] });
