import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'undici';
import { contentCoding } from './content-coding.js';

export interface SmallAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

interface SmallLimits {
  /** For the whole of it. */
  readonly timeoutMs: number;
  /** For the body, also when it is unpacked. */
  readonly maxBytes: number;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 3;

/**
 * One GET for a small document, on a connection of its own. Redirects are followed within the origin alone, since the
 * headers may hold credentials.
 * @param headers of the request
 * @throws Error when it cannot be made, takes too long, or brings more than the limit
 */
export async function smallGet(
  url: URL,
  headers: Readonly<Record<string, string>>,
  { timeoutMs, maxBytes }: SmallLimits,
): Promise<SmallAnswer> {
  const signal = AbortSignal.timeout(timeoutMs);
  let at = url;
  for (let redirects = 0; ; redirects++) {
    const answer = await get(at, headers, signal, maxBytes);
    const next = redirects < MAX_REDIRECTS ? redirectOf(answer, at) : undefined;
    if (next === undefined) return answer;
    at = next;
  }
}

async function get(
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  maxBytes: number,
): Promise<SmallAnswer> {
  const all = { ...headers, 'accept-encoding': 'identity' };
  const answer = await request(url, { method: 'GET', headers: all, signal, reset: true });
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer.body as AsyncIterable<Buffer>) {
    bytes += piece.length;
    // Leaving the loop ends the connection.
    if (bytes > maxBytes) throw new Error(`more than ${maxBytes} bytes`);
    pieces.push(piece);
  }
  const encoding = String(answer.headers['content-encoding'] ?? '').toLowerCase();
  const body = Buffer.concat(pieces);
  // Some servers compress although they were asked not to.
  const coding = contentCoding(encoding);
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body: coding === undefined ? body : coding.decode(body, maxBytes),
  };
}

function redirectOf({ status, headers: { location } }: SmallAnswer, from: URL): URL | undefined {
  if (!REDIRECTS.has(status) || location === undefined || !URL.canParse(location, from.href))
    return undefined;
  const to = new URL(location, from);
  return to.origin === from.origin ? to : undefined;
}
