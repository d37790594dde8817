/** What is wrong with a gateway file, and where: all of it at once, for people and for programs. */

export interface ConfigProblem {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
  /** The key in question, as in `routes[0].backend.era`; empty for the file as a whole. */
  readonly path: string;
  readonly found: string;
  readonly expected: string;
  /** One sentence with path, found and expected, without file and position. */
  readonly message: string;
}

/** Thrown with every problem that was found; `message` has one line for each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(formatProblem).join('\n'));
    this.problems = problems;
  }
}

/** `gateway.yaml:7:12: routes[0].backend.era: found "moden", expected one of …`; editors make it a link. */
export function formatProblem(problem: ConfigProblem): string {
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}

export type Segment = string | number;

/** `routes[0].backend.era`; keys that are no plain words are quoted. */
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

/** The way back from a JSON pointer; `data` tells list indexes from keys made of digits. */
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
