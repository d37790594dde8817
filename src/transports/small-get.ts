import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'undici';

export interface SmallAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * One GET for a small document, on a connection of its own, without following redirects.
 * @param headers of the request
 * @param limits for the whole of it, in milliseconds, and for the body
 * @throws Error when it cannot be made, takes too long, or brings more than the limit
 */
export async function smallGet(
  url: URL,
  headers: Readonly<Record<string, string>>,
  { timeoutMs, maxBytes }: { readonly timeoutMs: number; readonly maxBytes: number },
): Promise<SmallAnswer> {
  const signal = AbortSignal.timeout(timeoutMs);
  const answer = await request(url, { method: 'GET', headers, signal, reset: true });
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer.body as AsyncIterable<Buffer>) {
    bytes += piece.length;
    // Leaving the loop ends the connection.
    if (bytes > maxBytes) throw new Error(`more than ${maxBytes} bytes`);
    pieces.push(piece);
  }
  return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(pieces) };
}
