import type { ServerResponse } from 'node:http';
import { type Host, type Loose, listen, type ReceivedRequest, recordRequest } from '../net.js';

/** A tool call that a fixture server received. */
export interface ToolCall {
  readonly tool: string;
  readonly arguments: Loose;
  /** `params._meta` as the SDK shows it to a handler (the v2 SDK lifts the reserved keys out). */
  readonly meta: Loose;
  readonly sessionId: string | undefined;
  /** Set when the handler's abort signal fired. */
  cancelled: boolean;
  /** Set when the handler returned or threw. */
  finished: boolean;
}

/** What a peer can tell all of its clients, unasked. */
export interface Announcer {
  toolsChanged(): void;
  promptsChanged(): void;
  resourcesChanged(): void;
  resourceUpdated(uri: string): void;
}

/** A real MCP server on loopback. */
export interface Peer {
  readonly name: string;
  /** The MCP endpoint. */
  readonly url: string;
  readonly port: number;
  /** Every HTTP request received, in order, also across restarts. */
  readonly requests: ReceivedRequest[];
  /** Every tool call that reached a handler, in order. Empty for peers that run as a child process. */
  readonly calls: ToolCall[];
  /** Goes away: connections end, sessions are forgotten, the port refuses. */
  stop(): Promise<void>;
  /** Comes back on the same port, as a fresh process would. */
  start(): Promise<void>;
  /** `stop` and `start`. */
  restart(): Promise<void>;
  /** Ends the peer for good. */
  close(): Promise<void>;
  /** Number of sessions that are open at this moment; 0 for stateless peers and child processes. */
  sessions(): number;
  readonly announce: Announcer;
}

/** One run of a server, from start to stop. */
export interface Run {
  handle(
    request: Parameters<Parameters<typeof listen>[0]>[0],
    response: ServerResponse,
  ): void | Promise<void>;
  /** Ends sessions and streams. */
  end(): Promise<void>;
  sessions(): number;
  announce: Announcer;
}

/**
 * Hosts a server at `/mcp`, recording what it receives. `begin` is called for each start, so that nothing survives a
 * restart but the port and the records.
 */
export async function hostPeer(
  name: string,
  begin: (calls: ToolCall[]) => Run | Promise<Run>,
): Promise<Peer> {
  const requests: ReceivedRequest[] = [];
  const calls: ToolCall[] = [];
  let run = await begin(calls);
  let up = true;
  const host: Host = await listen((request, response) => {
    requests.push(recordRequest(request, response));
    if (!request.url?.startsWith('/mcp')) {
      response.writeHead(404).end();
      return;
    }
    Promise.resolve(run.handle(request, response)).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error));
    });
  });
  const peer: Peer = {
    name,
    url: `${host.origin}/mcp`,
    port: host.port,
    requests,
    calls,
    async stop() {
      if (!up) return;
      up = false;
      await run.end();
      await host.stop();
    },
    async start() {
      if (up) return;
      run = await begin(calls);
      await host.start();
      up = true;
    },
    async restart() {
      await peer.stop();
      await peer.start();
    },
    close: () => peer.stop(),
    sessions: () => run.sessions(),
    announce: {
      toolsChanged: () => run.announce.toolsChanged(),
      promptsChanged: () => run.announce.promptsChanged(),
      resourcesChanged: () => run.announce.resourcesChanged(),
      resourceUpdated: (uri) => run.announce.resourceUpdated(uri),
    },
  };
  return peer;
}
