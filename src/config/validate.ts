/** Validates a file against the schema, and reports each violation with its position and the title in the schema. */

import type { ErrorObject } from 'ajv/dist/2020.js';
import type { ConfigDocument } from './document.js';
import { nearest } from './nearest.js';
import { type Segment, segmentsOf, valueAt } from './problems.js';
import { configSchema, expectedText, mappingsWithKey, schemaAt } from './schema.js';
import { parseDuration, parseSize } from './units.js';

const STDIO_HINT = 'for a server on stdio give command and args in place of url';

/** Values of `transport` in the configuration of other gateways. */
const TRANSPORT_HINTS: Readonly<Record<string, string>> = {
  stdio: STDIO_HINT,
  sse: 'did you mean http-sse?',
};

/** Texts that are converted to a type of the schema. */
const CONVERTIBLE: Readonly<Record<string, RegExp | undefined>> = {
  integer: /^\d{1,15}$/,
  boolean: /^(true|false)$/,
};

/** Validates `document.data`, fills in the defaults in place, and reports every violation. */
export function validateAgainstSchema(document: ConfigDocument): void {
  const { validate } = configSchema();
  lowerLogLevel(document);
  dropExtensions(document);
  if (!validate(document.data) && convertText(document, validate.errors ?? [])) validate(document.data);
  const seen = new Set<string>();
  for (const error of validate.errors ?? []) {
    const segments = segmentsOf(error.instancePath, document.data);
    const reportError = REPORTERS[error.keyword] ?? reportValue;
    const key = `${error.instancePath} ${reportError === reportValue ? '' : JSON.stringify(error.params)}`;
    // Several keywords may reject one value, and those below propertyNames repeat its error.
    if (error.propertyName !== undefined || seen.has(key) || isAlternative(error)) continue;
    seen.add(key);
    reportError(document, segments, error);
  }
  checkUnits(document, document.data, []);
}

/** Keys that begin with x- at the top level hold anchors, as in compose files. */
function dropExtensions({ data }: ConfigDocument): void {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return;
  for (const key of Object.keys(data))
    if (key.startsWith('x-')) delete (data as Record<string, unknown>)[key];
}

/** Other programs write their levels in capitals. */
function lowerLogLevel({ data }: ConfigDocument): void {
  const log = valueAt(data, ['log']) as { level?: unknown } | undefined;
  if (typeof log === 'object' && log !== null && typeof log.level === 'string')
    log.level = log.level.toLowerCase();
}

/**
 * Converts values of placeholders, which are text, to the number or boolean that the schema expects.
 *
 * @returns whether any was converted
 */
function convertText(document: ConfigDocument, errors: readonly ErrorObject[]): boolean {
  let changed = false;
  for (const { keyword, params, instancePath } of errors) {
    const pattern = keyword === 'type' ? CONVERTIBLE[params['type']] : undefined;
    if (pattern === undefined) continue;
    const segments = segmentsOf(instancePath, document.data);
    const value = valueAt(document.data, segments);
    if (document.sourceOf(segments) === undefined || !pattern.test(String(value))) continue;
    const parent = valueAt(document.data, segments.slice(0, -1)) as Record<Segment, unknown>;
    parent[segments.at(-1) ?? ''] = params['type'] === 'integer' ? Number(value) : value === 'true';
    changed = true;
  }
  return changed;
}

/** Whether an error is about keys that exclude each other; a rule reports them with a better message. */
function isAlternative({ keyword, schemaPath }: ErrorObject): boolean {
  return keyword === 'oneOf' || schemaPath.includes('/oneOf/');
}

interface Unit {
  readonly parse: (text: string) => number | undefined;
  readonly limit: string;
  /** Values that mean none. */
  readonly none: readonly string[];
}

const DURATION: Unit = { parse: parseDuration, limit: 'a duration of at most 24 days', none: [] };
const SIZE: Unit = { parse: parseSize, limit: 'a size below 4GiB', none: [] };

/** By the name of the definition in the schema. */
const UNITS: Readonly<Record<string, Unit | undefined>> = {
  duration: DURATION,
  durationOrOff: { ...DURATION, none: ['off'] },
  size: SIZE,
  sizeOrNone: { ...SIZE, none: ['0'] },
};

type Reporter = (document: ConfigDocument, segments: readonly Segment[], error: ErrorObject) => void;

/** Keywords that reject a mapping because of one of its keys; all others reject a value. */
const REPORTERS: Readonly<Record<string, Reporter>> = {
  required: reportMissing,
  additionalProperties: reportUnknown,
  propertyNames: reportBadName,
};

function reportMissing(document: ConfigDocument, parent: readonly Segment[], error: ErrorObject): void {
  const key = String(error.params['missingProperty']);
  document.report([...parent, key], expectedText([...parent, key]), { found: 'nothing', at: 'key' });
}

function reportUnknown(document: ConfigDocument, parent: readonly Segment[], error: ErrorObject): void {
  const key = String(error.params['additionalProperty']);
  const known = Object.keys(schemaAt(parent)?.properties ?? {});
  const near = nearest(key, known);
  const elsewhere = mappingsWithKey(key).map((path) => (path === '' ? 'the top level' : path));
  const hint =
    near !== undefined
      ? `did you mean ${near}?`
      : elsewhere.length > 0
        ? `${key} is a key of ${elsewhere.join(' and ')}`
        : undefined;
  const expected = `one of ${known.join(', ')}${hint === undefined ? '' : ` (${hint})`}`;
  document.report([...parent, key], expected, { found: `the unknown key ${JSON.stringify(key)}`, at: 'key' });
}

function reportBadName(document: ConfigDocument, parent: readonly Segment[], error: ErrorObject): void {
  const key = String(error.params['propertyName']);
  const expected =
    parent.at(-1) === 'env'
      ? 'a name without = and NUL'
      : "a header name (letters, digits and !#$%&'*+-.^_`|~)";
  document.report([...parent, key], expected, {
    found: `the name ${JSON.stringify(key)}`,
    at: 'key',
  });
}

function reportValue(document: ConfigDocument, segments: readonly Segment[]): void {
  const value = valueAt(document.data, segments);
  const hints = segments.at(-1) === 'transport' ? TRANSPORT_HINTS : {};
  const hint = typeof value === 'string' && Object.hasOwn(hints, value) ? ` (${hints[value]})` : '';
  document.report(segments, `${expectedText(segments)}${hint}`);
}

/** Reports durations and sizes that are too large for a timer or a buffer. */
function checkUnits(document: ConfigDocument, value: unknown, segments: readonly Segment[]): void {
  if (typeof value === 'object' && value !== null) {
    for (const [key, child] of Object.entries(value)) {
      checkUnits(document, child, [...segments, Array.isArray(value) ? Number(key) : key]);
    }
    return;
  }
  const unit = UNITS[schemaAt(segments)?.$ref?.replace('#/$defs/', '') ?? ''];
  if (unit === undefined || document.isReported(segments)) return;
  if (!unit.none.includes(String(value)) && unit.parse(String(value)) === undefined) {
    document.report(segments, unit.limit);
  }
}
