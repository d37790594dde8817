import { request as httpRequest, type ServerResponse } from 'node:http';
import { listen } from './net.js';

/** One address, behind which another server can be put: a deployment as its clients see it. */
export interface Turntable {
  /** The address, `http://127.0.0.1:<port>/mcp`. */
  readonly url: string;
  /** Puts another server behind the address; what is open to the old one breaks. */
  turn(target: string): void;
  close(): Promise<void>;
}

/** Starts a reverse proxy to `target` that passes bytes on as they come. */
export async function startTurntable(target: string): Promise<Turntable> {
  let behind = target;
  const open = new Set<ServerResponse>();
  const host = await listen((request, response) => {
    open.add(response);
    response.on('close', () => open.delete(response));
    const url = new URL(behind);
    const onward = httpRequest(
      url,
      { method: request.method ?? 'GET', headers: { ...request.headers, host: url.host }, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
        answer.on('error', () => response.destroy());
      },
    );
    response.on('close', () => onward.destroy());
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  return {
    url: `${host.origin}/mcp`,
    turn(next) {
      behind = next;
      for (const response of open) response.destroy();
    },
    close: () => host.stop(),
  };
}
