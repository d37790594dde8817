/** Not sent: this transport has no session ids on the wire, and keeps the cookies of the stream itself. */
const OWN: ReadonlySet<string> = new Set(['mcp-session-id', 'cookie']);
/** Describe the body of a POST and the responses to it. */
const OF_POST: ReadonlySet<string> = new Set([
  'content-type',
  'accept',
  'accept-encoding',
  'mcp-protocol-version',
]);

/** Headers of a POST, given those of a POST of Streamable HTTP; name and value in turn. */
export function messageHeaders(headers: readonly string[]): string[] {
  return without(headers, (name) => OWN.has(name));
}

/** Headers of the GET that opens a stream, given those of the `initialize` POST. */
export function streamHeaders(headers: readonly string[]): string[] {
  const carried = without(headers, (name) => OWN.has(name) || OF_POST.has(name));
  return [
    'accept',
    'text/event-stream',
    'accept-encoding',
    'identity',
    'cache-control',
    'no-cache',
    ...carried,
  ];
}

export function headerOf(headers: readonly string[], name: string): string | undefined {
  for (let i = 0; i + 1 < headers.length; i += 2) if (headers[i] === name) return headers[i + 1];
  return undefined;
}

function without(headers: readonly string[], unwanted: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] as string;
    if (!unwanted(name)) kept.push(name, headers[i + 1] as string);
  }
  return kept;
}
