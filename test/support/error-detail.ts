import type { Loose } from './net.js';

interface ErrorAnswer {
  readonly headers: Record<string, string | string[] | undefined>;
}

/** What only the log tells of an error: the detail in the line of the request, found by its `X-Request-Id`. */
export function detailOf({ logs }: { readonly logs: readonly Loose[] }, { headers }: ErrorAnswer): string {
  const id = headers['x-request-id'];
  const line = logs.find(({ requestId, detail }) => requestId === id && detail !== undefined);
  return line?.detail ?? `no detail in the log of request ${id}`;
}
