/** A gateway file while it is checked: its data, the position of each value, the problems found. */

import { LineCounter } from 'yaml';
import { type ConfigProblem, pathText, pointerOf, type Segment } from './problems.js';
import { foundText } from './redact.js';

/** The position of a value; offsets count from the start of the text. */
export interface Position {
  readonly valueOffset: number;
  readonly keyOffset: number | undefined;
  /** The text before placeholders were replaced; undefined if there were none. */
  readonly source: string | undefined;
  /** The value could not be read and its problem is reported, so no further one is. */
  readonly broken: boolean;
}

/** Filled in by `readDocument`; the later steps read the data, fill in defaults, and report problems. */
export class ConfigDocument {
  /** Undefined if the text is not YAML, null if it is empty. */
  data: unknown;
  readonly problems: ConfigProblem[] = [];
  readonly warnings: string[] = [];
  readonly file: string;
  /** The environment that placeholders are replaced from. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly lines = new LineCounter();
  readonly #positions = new Map<string, Position>();

  constructor(file: string, env: Readonly<Record<string, string | undefined>> = {}) {
    this.file = file;
    this.env = env;
  }

  setPosition(segments: readonly Segment[], position: Position): void {
    this.#positions.set(pointerOf(segments), position);
  }

  /** Reports a problem with the value or the key at `segments`; the position is its own, else that of its nearest parent. */
  report(segments: readonly Segment[], expected: string, options: { found?: string; at?: 'key' } = {}): void {
    const position = this.#nearest(segments);
    if (position?.broken) return;
    const found = options.found ?? this.found(segments);
    const offset = (options.at === 'key' ? position?.keyOffset : undefined) ?? position?.valueOffset ?? 0;
    this.reportAt(offset, segments, found, expected);
  }

  /** As {@link report}, for a problem that does not keep the gateway from starting. */
  warn(segments: readonly Segment[], text: string): void {
    const position = this.#nearest(segments);
    const { line, col } = this.lines.linePos(position?.keyOffset ?? position?.valueOffset ?? 0);
    const path = pathText(segments);
    this.warnings.push(`${this.file}:${line}:${col}: ${path === '' ? '' : `${path}: `}${text}`);
  }

  /** The value at `segments` as a message may show it, without secrets. */
  found(segments: readonly Segment[]): string {
    return foundText(this.data, segments, this.sourceOf(segments));
  }

  /** The text of the value before placeholders were replaced; undefined if there were none. */
  sourceOf(segments: readonly Segment[]): string | undefined {
    return this.#positions.get(pointerOf(segments))?.source;
  }

  /** Whether the file has this key, also without a value; defaults do not count. */
  isWritten(segments: readonly Segment[]): boolean {
    return this.#positions.has(pointerOf(segments));
  }

  /** Whether a problem with the value at `segments` has been reported. */
  isReported(segments: readonly Segment[]): boolean {
    if (this.#positions.get(pointerOf(segments))?.broken === true) return true;
    return this.problems.some(({ path }) => path === pathText(segments));
  }

  /** As {@link report}, for a problem at an offset of the text. */
  reportAt(offset: number, segments: readonly Segment[], found: string, expected: string): void {
    const { line, col } = this.lines.linePos(offset);
    const path = pathText(segments);
    const message = `${path === '' ? '' : `${path}: `}found ${found}, expected ${expected}`;
    this.problems.push({
      file: this.file,
      line: line || 1,
      column: col || 1,
      path,
      found,
      expected,
      message,
    });
  }

  #nearest(segments: readonly Segment[]): Position | undefined {
    for (let length = segments.length; length >= 0; length--) {
      const position = this.#positions.get(pointerOf(segments.slice(0, length)));
      if (position !== undefined) return position;
    }
    return undefined;
  }
}
