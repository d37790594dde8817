import type { Loose } from '../net.js';
import type { ToolCall } from './peer.js';

/** A server request to the client, in the words of both eras. */
export interface Ask {
  readonly method: 'elicitation/create' | 'sampling/createMessage' | 'roots/list';
  readonly params?: Loose;
}

/** Server requests that are sent to the client at once, by key. */
export type Round = Readonly<Record<string, Ask>>;

/** The answers to a round by key, `{ error: { code, message } }` for a refused one; or what to return for now. */
export type Asked = { readonly answers: Record<string, Loose> } | { readonly result: Loose };

/** What one run of a fixture server remembers; a restart begins a new one. */
export interface FixtureState {
  readonly calls: ToolCall[];
  count: number;
  connectAsked: boolean;
}

/** What a tool needs of its SDK, in the words of neither line. */
export interface ToolContext {
  readonly meta: Loose;
  readonly sessionId: string | undefined;
  readonly signal: AbortSignal;
  /** Lives as long as the server instance: the session where there is one, else the single request. */
  readonly memory: Map<string, string>;
  /** A notification on the call's own stream. */
  notify(method: string, params: Record<string, unknown>): Promise<void>;
  /** A log message through the SDK's own filter, on the call's stream or on the session's. */
  log(level: string, message: string, via: 'request' | 'session'): Promise<void>;
  /**
   * Sends a round of server requests to the client, on the call's own stream or on the session's. A handler that has to be run
   * again for the answers gets the result that it must return for now.
   */
  ask(round: number, questions: Round, via?: 'request' | 'session'): Promise<Asked>;
  /** Whether this run of the handler came with the answers to a round. */
  answered(round: number): boolean;
  /** Insists on a visit to `url`: throws, or gives the result to return; undefined once the user has been there. */
  visit(message: string, url: string): Loose;
}

/** A tool of the fixture; `lines` says which SDK lines have it (default: both). */
export interface FixtureTool {
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Loose;
  readonly outputSchema?: Loose;
  readonly lines?: 'v2';
  run(args: Loose, context: ToolContext, state: FixtureState): Promise<Loose> | Loose;
}
