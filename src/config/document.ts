/** What is known of a gateway file while it is being checked: its data, where each value stands, what is wrong. */

import { LineCounter } from 'yaml';
import { type ConfigProblem, pathText, pointerOf, type Segment } from './problems.js';
import { foundText } from './shown.js';

/** Where a value stands; offsets count from the start of the text. */
export interface Place {
  readonly valueOffset: number;
  readonly keyOffset: number | undefined;
  /** The text before placeholders were filled in, if any were. */
  readonly source: string | undefined;
  /** The value could not be read; further problems with it would only be noise. */
  readonly broken: boolean;
}

/** Filled in by `readDocument`; everything after it only reads the data and reports. */
export class ConfigDocument {
  /** Undefined if the text is no YAML, null if it is empty. */
  data: unknown;
  readonly problems: ConfigProblem[] = [];
  readonly warnings: string[] = [];
  readonly file: string;
  readonly lines = new LineCounter();
  readonly #places = new Map<string, Place>();

  constructor(file: string) {
    this.file = file;
  }

  setPlace(segments: readonly Segment[], place: Place): void {
    this.#places.set(pointerOf(segments), place);
  }

  /** Reports a problem with the value (or the key) at `segments`, or with the nearest thing around that has a place. */
  report(segments: readonly Segment[], expected: string, options: { found?: string; at?: 'key' } = {}): void {
    const place = this.#nearest(segments);
    if (place?.broken) return;
    const found = options.found ?? this.found(segments);
    const offset = (options.at === 'key' ? place?.keyOffset : undefined) ?? place?.valueOffset ?? 0;
    this.reportAt(offset, segments, found, expected);
  }

  /** As {@link report}, for what does not stop the start. */
  warn(segments: readonly Segment[], text: string): void {
    const place = this.#nearest(segments);
    const { line, col } = this.lines.linePos(place?.keyOffset ?? place?.valueOffset ?? 0);
    const path = pathText(segments);
    this.warnings.push(`${this.file}:${line}:${col}: ${path === '' ? '' : `${path}: `}${text}`);
  }

  /** What a problem may show of the value at `segments`: never a secret. */
  found(segments: readonly Segment[]): string {
    return foundText(this.data, segments, this.sourceOf(segments));
  }

  /** The text of the value before placeholders were filled in; undefined if there were none. */
  sourceOf(segments: readonly Segment[]): string | undefined {
    return this.#places.get(pointerOf(segments))?.source;
  }

  /** Whether the file itself has something there, be it nothing but a key; defaults are not written. */
  isWritten(segments: readonly Segment[]): boolean {
    return this.#places.has(pointerOf(segments));
  }

  isBroken(segments: readonly Segment[]): boolean {
    return this.#places.get(pointerOf(segments))?.broken ?? false;
  }

  /** As {@link report}, for what stands at an offset of the text and may have no path. */
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

  #nearest(segments: readonly Segment[]): Place | undefined {
    for (let length = segments.length; length >= 0; length--) {
      const place = this.#places.get(pointerOf(segments.slice(0, length)));
      if (place !== undefined) return place;
    }
    return undefined;
  }
}
