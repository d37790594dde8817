import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Batch, Frame, Rope } from '../jsonrpc/index.js';
import type { Refusal } from './errors.js';

/**
 * One HTTP request, whatever its method, path and transport. Bytes that cannot be parsed as HTTP count as a request too,
 * with an id and a response, but without a message.
 */
export class HttpRequest {
  readonly id: string;
  readonly socket: Socket;
  readonly message: IncomingMessage | undefined;
  /** On the monotonic clock, in milliseconds. */
  readonly startedAt = performance.now();
  /** The stages that were attached when the request began: each sees it to its end, or not at all. */
  readonly stages: readonly Stage[];
  #refusal: Rope | undefined;

  constructor(
    id: string,
    socket: Socket,
    message: IncomingMessage | undefined,
    stages: readonly Stage[] = NO_STAGES,
  ) {
    this.id = id;
    this.socket = socket;
    this.message = message;
    this.stages = stages;
  }

  /** The JSON-RPC error that is the response; undefined where the request was not refused, or has no body that says why. */
  get refusal(): Rope | undefined {
    return this.#refusal;
  }

  /** The response is a JSON-RPC error with a status from 400. */
  onRefused(error: Rope): void {
    this.#refusal = error;
  }

  /** The address of the peer: of the client, or of the proxy nearest to the gateway. */
  get remoteAddress(): string | undefined {
    return this.socket.remoteAddress;
  }

  /** The path without its query, which may hold a session id; undefined where no request could be read. */
  get path(): string | undefined {
    return this.message?.url?.split('?', 1)[0];
  }
}

/** A request whose method, path and headers could be read. */
export type ParsedRequest = HttpRequest & { readonly message: IncomingMessage };

export type Verdict = Refusal | undefined | Promise<Refusal | undefined>;

/** The response to a request, once it is over. */
export interface ResponseSummary {
  readonly status: number;
  /** False where the connection closed before the whole response was sent. */
  readonly complete: boolean;
}

/**
 * Something that concerns every request: access, limits, policy, metrics, capture. The methods are called in this order,
 * and for each request at most once, whatever transport it belongs to.
 */
export interface Stage {
  /** A request has begun. Called for each, also for those that are refused or cannot be read. */
  onRequest?(request: HttpRequest): void;
  /**
   * Decides whether a request goes on. Not called for CORS preflights, which carry no credentials and are answered before,
   * nor for what cannot be read as a request to a path.
   */
  admit?(request: ParsedRequest): Verdict;
  /** Decides whether the JSON-RPC message of an admitted POST is handled. */
  admitMessage?(request: ParsedRequest, message: Frame | Batch): Verdict;
  /** The response was sent, or its connection closed. Called for each request. */
  onResponse?(request: HttpRequest, response: ResponseSummary): void;
}

const NO_STAGES: readonly Stage[] = [];

export interface PipelineOptions {
  /** Called with what a stage throws from onRequest or onResponse; the request continues. */
  readonly onFault: (error: unknown, request: HttpRequest) => void;
}

/** A request that node has read, and its response. */
export interface OpenRequest {
  readonly request: HttpRequest;
  readonly res: ServerResponse;
}

/** Calls every stage for every request. The HTTP server begins and ends requests; stages attach. */
export class RequestPipeline {
  readonly #options: PipelineOptions;
  /** Replaced rather than changed, since each request keeps the list that it began with. */
  #stages: readonly Stage[] = NO_STAGES;
  /** Whether a stage observes responses: the listener for that costs each request. */
  #observesResponses = false;
  /** The last request on each connection: a parse error in the middle of it is no request of its own. */
  readonly #last = new WeakMap<Socket, OpenRequest>();

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /**
   * Attaches a stage behind those that are there; it sees the requests that begin from now on.
   * @returns detaches it when it is disposed
   */
  attach(stage: Stage): Disposable {
    this.#setStages([...this.#stages, stage]);
    return { [Symbol.dispose]: () => this.#setStages(this.#stages.filter((other) => other !== stage)) };
  }

  /** A request has begun. */
  begin(id: string, message: IncomingMessage, res: ServerResponse): ParsedRequest {
    const request = new HttpRequest(id, message.socket, message, this.#stages) as ParsedRequest;
    this.#last.set(message.socket, { request, res });
    this.#observe(request, (stage) => stage.onRequest?.(request));
    if (this.#observesResponses)
      res.on('close', () => this.end(request, { status: res.statusCode, complete: res.writableFinished }));
    return request;
  }

  /** A request has begun whose response is written to the socket directly; {@link end} must be called after it. */
  beginRaw(id: string, socket: Socket, message?: IncomingMessage): HttpRequest {
    const request = new HttpRequest(id, socket, message, this.#stages);
    this.#observe(request, (stage) => stage.onRequest?.(request));
    return request;
  }

  end(request: HttpRequest, response: ResponseSummary): void {
    this.#observe(request, (stage) => stage.onResponse?.(request, response));
  }

  /** The request on a connection whose body or response is incomplete; undefined between requests. */
  unfinished(socket: Socket): OpenRequest | undefined {
    const last = this.#last.get(socket);
    return last?.res.writableEnded === true && last.request.message?.complete === true ? undefined : last;
  }

  admit(request: ParsedRequest): Verdict {
    return this.#decide(request, 0, (stage) => stage.admit?.(request));
  }

  admitMessage(request: ParsedRequest, message: Frame | Batch): Verdict {
    return this.#decide(request, 0, (stage) => stage.admitMessage?.(request, message));
  }

  #setStages(stages: readonly Stage[]): void {
    this.#stages = stages;
    this.#observesResponses = stages.some(({ onResponse }) => onResponse !== undefined);
  }

  /** Asks the stages in turn, beginning with one; asynchronous only where a stage is. */
  #decide(request: ParsedRequest, from: number, ask: (stage: Stage) => Verdict): Verdict {
    const { stages } = request;
    for (let i = from; i < stages.length; i++) {
      const verdict = ask(stages[i] as Stage);
      if (verdict instanceof Promise) {
        return verdict.then((refusal) =>
          refusal === undefined ? this.#decide(request, i + 1, ask) : refusal,
        );
      }
      if (verdict !== undefined) return verdict;
    }
    return undefined;
  }

  #observe(request: HttpRequest, notify: (stage: Stage) => void): void {
    for (const stage of request.stages) {
      try {
        notify(stage);
      } catch (error) {
        this.#options.onFault(error, request);
      }
    }
  }
}
