import { randomUUID } from 'node:crypto';
import { parseAnswer, type RequestFrame, type Rope } from '../../jsonrpc/index.js';
import { TransportError } from '../errors.js';
import type { AnswerSink, Transmission, Transport } from '../transport.js';
import type { Conversation } from './conversation.js';
import { INITIALIZE } from './messages.js';
import { Processes, type ProcessesOptions } from './processes.js';
import type { StdioSession } from './session.js';

export interface StdioOptions extends ProcessesOptions {
  /** How long a process that several callers share is kept without anything to do, in milliseconds. */
  readonly idleMs: number;
}

interface Place {
  readonly conversation: Conversation;
  readonly session: StdioSession;
}

/** A process that nobody has asked anything is looked for this often. */
const LOOK_EVERY_MS = 5_000;

/**
 * A server on standard streams, acting as if it were reached over HTTP: `initialize` starts a process, which a session
 * id names from then on; a GET opens the stream for what belongs to no request of it, a DELETE ends it, and once it is
 * gone its id is not known any more. Requests without a session go to one process that all callers share.
 */
export class StdioTransport implements Transport {
  readonly #options: StdioOptions;
  readonly #processes: Processes;
  readonly #places = new Map<string, Place>();
  /** Of transports to try something out over. */
  readonly #siblings = new Set<Processes>();
  #common: Conversation | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#processes = new Processes(options);
  }

  send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: readonly string[],
    body: Rope | undefined,
    sink: AnswerSink,
  ): Transmission {
    const at = headers.indexOf('mcp-session-id');
    const place = at === -1 ? undefined : this.#places.get(headers[at + 1] as string);
    if (at !== -1 && place === undefined) return answerLater(sink, 404, 'Session not found');
    if (method === 'POST' && body !== undefined) return this.#post(body, sink, place);
    if (place === undefined) return answerLater(sink, 405, 'there is no stream without a session');
    if (method === 'GET') return place.session.listen(sink);
    this.#places.delete(place.session.id);
    this.#processes.end(place.conversation, 'its session has ended');
    return answerLater(sink, 200, '');
  }

  quirk(what: string): void {
    this.#options.onQuirk?.(what);
  }

  sibling(): Transport {
    const processes = new Processes(this.#options);
    this.#siblings.add(processes);
    return new SiblingTransport(processes, () => this.#siblings.delete(processes));
  }

  async close(): Promise<void> {
    clearInterval(this.#idle);
    await Promise.all([this.#processes, ...this.#siblings].map((processes) => processes.close()));
  }

  /** Ends the process of a session that its owner has given up. */
  abandon(sessionId: string): void {
    const place = this.#places.get(sessionId);
    this.#places.delete(sessionId);
    if (place !== undefined) this.#processes.end(place.conversation, 'its session was given up');
  }

  #post(body: Rope, sink: AnswerSink, place: Place | undefined): Transmission {
    const frame = parseAnswer(body.toBuffer());
    if (frame.type !== 'request') {
      const conversation = place?.conversation ?? this.#common;
      return conversation === undefined ? answerLater(sink, 202, '') : conversation.post(body, sink);
    }
    if (place !== undefined) return place.conversation.request(frame, sink, place.session);
    try {
      return frame.method === INITIALIZE ? this.#open(frame, sink) : this.#ask(frame, sink);
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      return failLater(sink, error);
    }
  }

  /** A session, on a process of its own. */
  #open(frame: RequestFrame, sink: AnswerSink): Transmission {
    const id = randomUUID();
    const conversation = this.#processes.start(false, () => this.#places.delete(id));
    const session = conversation.join(id);
    this.#places.set(id, { conversation, session });
    return conversation.request(frame, sink, session);
  }

  #ask(frame: RequestFrame, sink: AnswerSink): Transmission {
    if (this.#common === undefined || this.#common.over) {
      const common: Conversation = this.#processes.start(true, () => {
        if (this.#common === common) this.#common = undefined;
      });
      this.#common = common;
      this.#idle ??= setInterval(() => this.#look(), Math.min(this.#options.idleMs, LOOK_EVERY_MS)).unref();
    }
    return this.#common.request(frame, sink, undefined);
  }

  #look(): void {
    const common = this.#common;
    if (common === undefined || common.idleSince > performance.now() - this.#options.idleMs) return;
    this.#common = undefined;
    this.#processes.end(common, 'it had nothing to do');
  }
}

/** All requests to one process, which is ended with the transport: to try something out on. */
class SiblingTransport implements Transport {
  readonly #processes: Processes;
  readonly #onClosed: () => void;
  #process: Conversation | undefined;

  constructor(processes: Processes, onClosed: () => void) {
    this.#processes = processes;
    this.#onClosed = onClosed;
  }

  send(
    method: 'POST' | 'GET' | 'DELETE',
    _headers: readonly string[],
    body: Rope | undefined,
    sink: AnswerSink,
  ): Transmission {
    if (method !== 'POST' || body === undefined) return answerLater(sink, 405, '');
    const frame = parseAnswer(body.toBuffer());
    try {
      this.#process ??= this.#processes.start(true, () => {});
      if (this.#process.over) throw new TransportError('broken', 'it has ended');
      return frame.type === 'request'
        ? this.#process.request(frame, sink, undefined)
        : this.#process.post(body, sink);
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      return failLater(sink, error);
    }
  }

  quirk(): void {}

  async close(): Promise<void> {
    await this.#processes.close();
    this.#onClosed();
  }
}

/** Answers as a server would, once whoever sent the request can take it. */
function answerLater(sink: AnswerSink, status: number, text: string): Transmission {
  return later(() => {
    sink.onHead(status, {});
    sink.onEnd(text);
  });
}

function failLater(sink: AnswerSink, error: TransportError): Transmission {
  return later(() => sink.onError(error));
}

function later(work: () => void): Transmission {
  let aborted = false;
  queueMicrotask(() => {
    if (!aborted) work();
  });
  return {
    abort: () => {
      aborted = true;
    },
    waitFor() {},
  };
}
