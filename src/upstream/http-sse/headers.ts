/** Of the gateway's own making, or kept here: the transport has no session ids, and cookies belong to the stream. */
const OWN: ReadonlySet<string> = new Set(['mcp-session-id', 'cookie']);
/** What says how the body of a POST is written, and which answers to it can be read. */
const OF_POST: ReadonlySet<string> = new Set([
  'content-type',
  'accept',
  'accept-encoding',
  'mcp-protocol-version',
]);

/** Headers of a POST, given those of one of Streamable HTTP; name and value in turn. */
export function messageHeaders(headers: readonly string[]): string[] {
  return without(headers, (name) => OWN.has(name));
}

/** Headers of the GET that opens a stream, given those of the POST that it is opened for. */
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

/** @returns the value of a header; undefined where it is not among them */
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
