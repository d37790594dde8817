import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'undici';
import { contentCoding } from '../body/content-coding.js';

export interface SmallResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

interface SmallLimits {
  /** For the whole exchange, redirects included. */
  readonly timeoutMs: number;
  /** Of the body, both as sent and decompressed. */
  readonly maxBytes: number;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 3;

/**
 * Fetches a small document on a connection of its own. Redirects to another origin are not followed: the headers may
 * hold credentials.
 * @throws Error when the request fails, takes too long, or the body is longer than the limit
 */
export async function smallGet(
  url: URL,
  headers: Readonly<Record<string, string>>,
  { timeoutMs, maxBytes }: SmallLimits,
): Promise<SmallResponse> {
  const signal = AbortSignal.timeout(timeoutMs);
  let at = url;
  for (let redirects = 0; ; redirects++) {
    const response = await get(at, headers, signal, maxBytes);
    const next = redirects < MAX_REDIRECTS ? redirectOf(response, at) : undefined;
    if (next === undefined) return response;
    at = next;
  }
}

async function get(
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  maxBytes: number,
): Promise<SmallResponse> {
  const all = { ...headers, 'accept-encoding': 'identity' };
  const response = await request(url, { method: 'GET', headers: all, signal, reset: true });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // Leaving the loop closes the connection.
    if (bytes > maxBytes) throw new Error(`more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  const encoding = String(response.headers['content-encoding'] ?? '').toLowerCase();
  const body = Buffer.concat(chunks);
  // Some servers compress although the request asks for `identity`.
  const coding = contentCoding(encoding);
  return {
    status: response.statusCode,
    headers: response.headers,
    body: coding === undefined ? body : coding.decode(body, maxBytes),
  };
}

function redirectOf({ status, headers: { location } }: SmallResponse, from: URL): URL | undefined {
  if (!REDIRECTS.has(status) || location === undefined || !URL.canParse(location, from.href))
    return undefined;
  const to = new URL(location, from);
  return to.origin === from.origin ? to : undefined;
}
