/** What every hand-assembled fixture server serves, whatever its SDK line. */

export const INSTRUCTIONS = 'Fixture server for tests.';

export const CONFIG_URI = 'file:///config.json';
export const CONFIG_TEXT = '{"debug":true,"region":"eu-central-1"}';
/** A URI outside ASCII, as servers with file names of their users have them. */
export const REPORT_URI = 'file:///Załączniki/raport.pdf';
export const REPORT_BLOB = Buffer.from('%PDF-1.7 raport').toString('base64');
export const MISSING_URI = 'file:///missing.txt';
export const NOTE_TEMPLATE = 'note:///{name}';
const NOTES = ['alpha', 'beta', 'gamma'];

/** The fixture's resources, in list order; lists come in pages of `RESOURCES_PER_PAGE`. */
export const RESOURCES = [
  { uri: CONFIG_URI, name: 'config.json', mimeType: 'application/json', description: 'The configuration' },
  { uri: REPORT_URI, name: 'raport.pdf', mimeType: 'application/pdf' },
  ...NOTES.map((name) => ({ uri: `note:///${name}`, name, mimeType: 'text/plain' })),
];
export const RESOURCES_PER_PAGE = 2;

/** The contents of a resource, or undefined when there is none of that URI. */
export function readResource(uri: string) {
  if (uri === CONFIG_URI) return [{ uri, mimeType: 'application/json', text: CONFIG_TEXT }];
  if (uri === REPORT_URI) return [{ uri, mimeType: 'application/pdf', blob: REPORT_BLOB }];
  const note = /^note:\/\/\/(\w+)$/.exec(uri)?.[1];
  if (note && NOTES.includes(note)) return [{ uri, mimeType: 'text/plain', text: `Note ${note}` }];
  return undefined;
}

/** Suggestions for the template variable of `NOTE_TEMPLATE`. */
export function completeNote(value: string): string[] {
  return NOTES.filter((name) => name.startsWith(value));
}

const NAMES = ['Ada', 'Alan', 'Grace'];
/** Suggestions for the argument `name` of the prompt `greet`. */
export function completeName(value: string): string[] {
  return NAMES.filter((name) => name.toLowerCase().startsWith(value.toLowerCase()));
}

/** The one message of the prompt `greet`. */
export function greeting(name: string, style?: string): string {
  return style ? `Greet ${name} in a ${style} way.` : `Greet ${name}.`;
}

export const WEATHER = '72°F, partly cloudy';

/** Orders by id; others are an error of the tool. */
export const ORDERS: Readonly<Record<string, { status: string; carrier: string; eta: string }>> = {
  'PT-1041': { status: 'shipped', carrier: 'Delhivery', eta: '2026-08-05' },
};

/** Result of `order_status`: an unknown order is a result with `isError`, not a JSON-RPC error. */
export function orderStatus(id: string) {
  const order = ORDERS[id];
  if (!order) {
    return { content: [{ type: 'text' as const, text: `Order ${id} was not found.` }], isError: true };
  }
  const content = [{ type: 'text' as const, text: JSON.stringify(order) }];
  return { content, structuredContent: order, isError: false };
}

/** `_meta` keys under which `echo` reports what it received. */
export const ECHO_ARGUMENTS = 'example.com/arguments';
export const ECHO_META = 'example.com/meta';

/** Result of `echo`: the arguments as text, as structured content and in `_meta`, and the `_meta` received. */
export function echoed(args: Record<string, unknown>, meta: unknown) {
  return {
    content: [{ type: 'text' as const, text: JSON.stringify(args) }],
    structuredContent: args,
    _meta: { [ECHO_ARGUMENTS]: args, [ECHO_META]: meta ?? null },
  };
}

export const TEXT = (text: string) => ({ content: [{ type: 'text' as const, text }] });

/** Where a user would connect an account; the tool `connect_account` insists on it. */
export const CONNECT_URL = 'https://accounts.example.com/connect?state=fixture';

/** JSON Schemas of the tools' arguments and results, 2020-12. */
export const SCHEMAS = {
  anything: { type: 'object', additionalProperties: true },
  add: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  weather: { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] },
  order: { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] },
  orderResult: {
    type: 'object',
    properties: { status: { type: 'string' }, carrier: { type: 'string' }, eta: { type: 'string' } },
    required: ['status', 'carrier', 'eta'],
  },
  slow: {
    type: 'object',
    properties: {
      ms: { type: 'integer', description: 'How long the call takes, in milliseconds' },
      steps: { type: 'integer', description: 'Progress notifications on the way (default 3)' },
    },
    required: ['ms'],
  },
  log: {
    type: 'object',
    properties: {
      message: { type: 'string' },
      level: { type: 'string' },
      via: { type: 'string', enum: ['request', 'session'] },
    },
    required: ['message'],
  },
  /** Arguments mirrored into request headers by modern clients. */
  region: {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      priority: { type: 'integer', 'x-mcp-header': 'Priority' },
      dry_run: { type: 'boolean', 'x-mcp-header': 'DryRun' },
      note: { type: 'string' },
    },
    required: ['region'],
  },
  numbers: { type: 'array', items: { type: 'integer' } },
} as const;

/**
 * Cuts a list into pages. `cursor` is the start index in decimal.
 * @throws RangeError for a cursor that no page ended with.
 */
export function page<T>(
  items: readonly T[],
  size: number,
  cursor: string | undefined,
): { items: T[]; nextCursor?: string } {
  const start = cursor === undefined ? 0 : Number(cursor);
  if (!Number.isInteger(start) || start < 0 || start >= Math.max(items.length, 1)) {
    throw new RangeError(`Invalid cursor ${cursor}`);
  }
  const next = start + size;
  return {
    items: items.slice(start, next),
    ...(next < items.length ? { nextCursor: String(next) } : {}),
  };
}
