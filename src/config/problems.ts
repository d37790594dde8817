/** Problems of a gateway file with their positions, as text and as data; and paths to values in it. */

export interface ConfigProblem {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
  /** The path of the value, as in `routes[0].backend.era`; empty for the file as a whole. */
  readonly path: string;
  readonly found: string;
  readonly expected: string;
  /** One sentence with path, found and expected, without file and position. */
  readonly message: string;
}

/** Holds every problem that was found; `message` has one line for each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(formatProblem).join('\n'));
    this.problems = problems;
  }
}

/** One line: `gateway.yaml:7:12: routes[0].backend.era: found "moden", expected one of …`. */
export function formatProblem(problem: ConfigProblem): string {
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}

export type Segment = string | number;

/** A path as text: `routes[0].backend.era`; a key that is not a plain word is in brackets and quotes. */
export function pathText(segments: readonly Segment[]): string {
  let text = '';
  for (const segment of segments) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (!/^[\w-]+$/.test(segment)) text += `[${JSON.stringify(segment)}]`;
    else text += text === '' ? segment : `.${segment}`;
  }
  return text;
}

/** JSON pointer (RFC 6901). */
export function pointerOf(segments: readonly Segment[]): string {
  return segments.map((s) => `/${String(s).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** The path of a JSON pointer; `data` shows whether a number is an index or a key. */
export function segmentsOf(pointer: string, data: unknown): Segment[] {
  if (pointer === '') return [];
  let at = data;
  return pointer
    .slice(1)
    .split('/')
    .map((part) => {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
      const segment = Array.isArray(at) ? Number(key) : key;
      at = childOf(at, segment);
      return segment;
    });
}

/** The value at `segments` below `data`, or undefined where there is none. */
export function valueAt(data: unknown, segments: readonly Segment[]): unknown {
  return segments.reduce(childOf, data);
}

function childOf(parent: unknown, key: Segment): unknown {
  if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, key)) return undefined;
  return (parent as Record<Segment, unknown>)[key];
}
