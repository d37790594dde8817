/** YAML text to plain data with the placeholders filled in, and the place of each value in the text. */

import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  type Scalar,
  type YAMLMap,
  type YAMLParseError,
} from 'yaml';
import { type InterpolationSources, interpolate } from './interpolate.js';
import { type ConfigProblem, pathText, pointerOf, type Segment } from './problems.js';
import { foundText } from './shown.js';

/** Far beyond any real file; aliases can multiply a few lines into more than memory holds. */
const MAX_VALUES = 100_000;
const MAX_DEPTH = 32;

interface Place {
  readonly valueOffset: number;
  readonly keyOffset: number | undefined;
  /** The text before placeholders were filled in, if any were. */
  readonly source: string | undefined;
  /** A placeholder could not be filled in; further problems with this value would only be noise. */
  readonly broken: boolean;
}

/** A parsed file: its data, the problems found so far, and the means to report more. */
export class ConfigDocument {
  data: unknown;
  readonly problems: ConfigProblem[] = [];
  readonly warnings: string[] = [];
  readonly file: string;
  readonly #places = new Map<string, Place>();
  readonly #lines = new LineCounter();
  readonly #sources: InterpolationSources;
  readonly #text: string;
  #values = 0;

  constructor(text: string, file: string, sources: InterpolationSources) {
    this.#text = text;
    this.file = file;
    this.#sources = sources;
    const yaml = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, logLevel: 'silent' });
    for (const error of [...yaml.errors, ...yaml.warnings]) this.#syntaxProblem(error);
    // After a duplicate key the rest of the file still means what it says; after any other error it may not.
    if (yaml.errors.some((error) => error.code !== 'DUPLICATE_KEY')) return;
    this.data = this.#read(yaml.contents, [], undefined, yaml);
  }

  /** Reports a problem with the value (or the key) at `segments`, or with the nearest thing around that has a place. */
  report(segments: readonly Segment[], expected: string, options: { found?: string; at?: 'key' } = {}): void {
    const place = this.#nearest(segments);
    if (place?.broken) return;
    const found = options.found ?? this.found(segments);
    const offset = (options.at === 'key' ? place?.keyOffset : undefined) ?? place?.valueOffset ?? 0;
    this.#problem(offset, segments, found, expected);
  }

  /** As {@link report}, for what does not stop the start. */
  warn(segments: readonly Segment[], text: string): void {
    const place = this.#nearest(segments);
    const { line, col } = this.#lines.linePos(place?.keyOffset ?? place?.valueOffset ?? 0);
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

  isBroken(segments: readonly Segment[]): boolean {
    return this.#places.get(pointerOf(segments))?.broken ?? false;
  }

  #nearest(segments: readonly Segment[]): Place | undefined {
    for (let length = segments.length; length >= 0; length--) {
      const place = this.#places.get(pointerOf(segments.slice(0, length)));
      if (place !== undefined) return place;
    }
    return undefined;
  }

  #problem(offset: number, segments: readonly Segment[], found: string, expected: string): void {
    const { line, col } = this.#lines.linePos(offset);
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

  #syntaxProblem(error: { code: YAMLParseError['code']; pos: [number, number]; message: string }): void {
    const offset = error.pos[0];
    if (error.code === 'DUPLICATE_KEY') {
      const key = /^[^\s:,]+/.exec(this.#text.slice(offset))?.[0] ?? '';
      this.#problem(offset, [], `the key ${key} a second time`, 'each key once in a mapping');
      return;
    }
    // Some messages of the parser quote the text that it stumbled over, which may be a secret.
    const reason = error.message.replace(/: ".*$/s, '').replace(/\.$/, '');
    this.#problem(offset, [], `text that is not YAML (${reason})`, 'valid YAML');
  }

  #read(
    node: ParsedNode | Node | null,
    segments: readonly Segment[],
    keyOffset: number | undefined,
    yaml: Document,
  ) {
    const target = isAlias(node) ? this.#resolve(node, yaml) : node;
    const place: Place = {
      valueOffset: node?.range?.[0] ?? keyOffset ?? 0,
      keyOffset,
      source: undefined,
      broken: false,
    };
    this.#places.set(pointerOf(segments), place);
    if (segments.length > MAX_DEPTH || ++this.#values > MAX_VALUES) {
      if (segments.length > MAX_DEPTH || this.#values === MAX_VALUES + 1) {
        this.#problem(
          place.valueOffset,
          [],
          'more than a gateway file can hold',
          'fewer nested values and aliases',
        );
      }
      return null;
    }
    if (isMap(target)) return this.#readMap(target, segments, yaml);
    if (isSeq(target)) {
      return target.items.map((item, i): unknown =>
        this.#read(item as Node, [...segments, i], undefined, yaml),
      );
    }
    if (isScalar(target)) return this.#readScalar(target, segments, place);
    return null;
  }

  #readMap(map: YAMLMap, segments: readonly Segment[], yaml: Document): Record<string, unknown> {
    // Without a prototype, so that a key such as __proto__ is an unknown key like any other.
    const data: Record<string, unknown> = Object.create(null);
    const merged: Node[] = [];
    for (const { key, value } of map.items) {
      const name = isScalar(key) ? String(key.value) : String(key);
      if (name === '<<' && isScalar(key) && key.type === 'PLAIN') merged.push(value as Node);
      else data[name] = this.#read(value as Node, [...segments, name], (key as Node).range?.[0], yaml);
    }
    for (const node of merged.flatMap((value) => (isSeq(value) ? (value.items as Node[]) : [value]))) {
      const source = isAlias(node) ? this.#resolve(node, yaml) : node;
      if (!isMap(source)) {
        this.#problem(
          node?.range?.[0] ?? 0,
          segments,
          'a merge key (<<) without a mapping',
          'an alias of a mapping',
        );
        continue;
      }
      for (const [name, value] of Object.entries(this.#readMap(source, segments, yaml))) data[name] ??= value;
    }
    return data;
  }

  #readScalar(scalar: Scalar, segments: readonly Segment[], place: Place): unknown {
    if (typeof scalar.value !== 'string') return scalar.value;
    const { text, filled, problems } = interpolate(scalar.value, this.#sources);
    const start = scalar.range?.[0] ?? place.valueOffset;
    for (const problem of problems) {
      const within = this.#text.slice(start, scalar.range?.[1]).indexOf(problem.source);
      this.#problem(start + Math.max(0, within), segments, problem.found, problem.expected);
    }
    if (filled) {
      const broken = problems.length > 0;
      this.#places.set(pointerOf(segments), { ...place, source: scalar.value, broken });
    }
    return text;
  }

  #resolve(alias: Alias, yaml: Document): Node | undefined {
    return alias.resolve(yaml);
  }
}
