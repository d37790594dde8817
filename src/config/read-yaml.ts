/** Reads YAML text into plain data with placeholders replaced, and records the position of each value. */

import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Node,
  parseDocument,
  type Scalar,
  visit,
  type YAMLMap,
  type YAMLParseError,
  type YAMLSeq,
  type YAMLWarning,
} from 'yaml';
import { ConfigDocument, type Position } from './document.js';
import { type InterpolationSources, interpolate } from './interpolate.js';
import type { Segment } from './problems.js';

/** Limits far above any real file: with aliases, a few lines can stand for more values than fit into memory. */
const MAX_VALUES = 100_000;
const MAX_DEPTH = 32;
const TOO_MUCH = 'more than a gateway file can hold';

/** Reads `text`; errors of the YAML and of placeholders are among the problems of the result. */
export function readDocument(text: string, file: string, sources: InterpolationSources): ConfigDocument {
  const document = new ConfigDocument(file, sources.env);
  const yaml = parseDocument(text, { lineCounter: document.lines, prettyErrors: false });
  const unquoted = yaml.errors.some(({ code }) => code !== 'DUPLICATE_KEY')
    ? unquotedPlaceholder(text)
    : undefined;
  // All errors that follow are about the same braces.
  if (unquoted !== undefined)
    document.reportAt(
      unquoted,
      [],
      'a placeholder without quotes between braces or brackets',
      `it in quotes: "\${NAME}"`,
    );
  else for (const error of [...yaml.errors, ...yaml.warnings]) reportSyntax(document, text, error);
  // After a duplicate key the rest of the file can still be checked; after any other error it may be misread.
  if (yaml.errors.every((error) => error.code === 'DUPLICATE_KEY')) {
    document.data = new Reader(document, text, sources, aliasTargets(yaml)).read(
      yaml.contents,
      [],
      undefined,
    );
  }
  return document;
}

/** A `${` after a `{` or `[` of the same line, with no quote or comment before it: YAML takes its brace for a mapping. */
const UNQUOTED = /^[^"'#\n]*[{[][^"'#\n]*?(?=\$\{)/m;

function unquotedPlaceholder(text: string): number | undefined {
  const match = UNQUOTED.exec(text);
  return match === null ? undefined : match.index + match[0].length;
}

function reportSyntax(document: ConfigDocument, text: string, error: YAMLParseError | YAMLWarning): void {
  const offset = error.pos[0];
  if (error.code === 'DUPLICATE_KEY') {
    const key = /^[^\s:,]+/.exec(text.slice(offset))?.[0] ?? '';
    document.reportAt(offset, [], `the key ${key} a second time`, 'each key once in a mapping');
    return;
  }
  if (error.code === 'MULTIPLE_DOCS') {
    document.reportAt(offset, [], 'a second document (---)', 'one document in a file');
    return;
  }
  // Some messages of the parser quote the text, which may be a secret.
  const reason = error.message.replace(/: ".*$/s, '').replace(/\.$/, '');
  document.reportAt(offset, [], `text that is not YAML (${reason})`, 'valid YAML');
}

class Reader {
  readonly #document: ConfigDocument;
  readonly #text: string;
  readonly #sources: InterpolationSources;
  readonly #aliases: ReadonlyMap<unknown, Node>;
  /** The mappings and lists around the present node: an alias of one of them would be endless. */
  readonly #open = new Set<Node>();
  #values = 0;

  constructor(
    document: ConfigDocument,
    text: string,
    sources: InterpolationSources,
    aliases: ReadonlyMap<unknown, Node>,
  ) {
    this.#document = document;
    this.#text = text;
    this.#sources = sources;
    this.#aliases = aliases;
  }

  /** Returns the value of a node, and records positions and problems. */
  read(node: unknown, segments: readonly Segment[], keyOffset: number | undefined): unknown {
    const valueOffset = offsetOf(node) ?? keyOffset ?? 0;
    const target = this.#follow(node, segments, valueOffset);
    const broken = target === undefined && isAlias(node);
    const position: Position = { valueOffset, keyOffset, source: undefined, broken };
    this.#document.setPosition(segments, position);
    if (this.#isTooMuch(segments, valueOffset)) return null;
    if (isScalar(target)) return this.#readScalar(target, segments, position);
    if (isMap(target)) return this.#readMap(target, segments, Object.create(null));
    if (isSeq(target)) return this.#readList(target, segments);
    return null;
  }

  #readList(list: YAMLSeq, segments: readonly Segment[]): unknown[] {
    this.#open.add(list);
    const data = list.items.map((item, i) => this.read(item, [...segments, i], undefined));
    this.#open.delete(list);
    return data;
  }

  /**
   * Adds the keys that `data` does not have yet, then those of merged mappings. `data` has no prototype, so that
   * __proto__ is an unknown key like any other.
   */
  #readMap(
    map: YAMLMap,
    segments: readonly Segment[],
    data: Record<string, unknown>,
  ): Record<string, unknown> {
    this.#open.add(map);
    const merged: unknown[] = [];
    for (const { key, value } of map.items) {
      const name = isScalar(key) ? String(key.value) : String(key);
      if (name === '<<' && isScalar(key) && key.type === 'PLAIN') merged.push(value);
      else if (!Object.hasOwn(data, name)) data[name] = this.read(value, [...segments, name], offsetOf(key));
    }
    for (const node of merged.flatMap((value) => (isSeq(value) ? value.items : [value]))) {
      const offset = offsetOf(node) ?? 0;
      const source = this.#follow(node, segments, offset);
      if (isMap(source)) {
        if (!this.#isTooMuch(segments, offset)) this.#readMap(source, segments, data);
      } else if (!isAlias(node) || source !== undefined) {
        this.#document.reportAt(
          offset,
          segments,
          'a merge key (<<) without a mapping',
          'an alias of a mapping',
        );
      }
    }
    this.#open.delete(map);
    return data;
  }

  #readScalar(scalar: Scalar, segments: readonly Segment[], position: Position): unknown {
    if (typeof scalar.value !== 'string') return scalar.value;
    const { text, filled, problems } = interpolate(scalar.value, this.#sources);
    const start = scalar.range?.[0] ?? position.valueOffset;
    for (const problem of problems) {
      const within = this.#text.slice(start, scalar.range?.[1]).indexOf(problem.source);
      this.#document.reportAt(start + Math.max(0, within), segments, problem.found, problem.expected);
    }
    if (filled) {
      const broken = problems.length > 0;
      this.#document.setPosition(segments, { ...position, source: scalar.value, broken });
    }
    return text;
  }

  /** The target of an alias, or any other node itself; undefined, with a problem, for an alias without a valid target. */
  #follow(node: unknown, segments: readonly Segment[], offset: number): Node | undefined {
    if (!isAlias(node)) return isNode(node) ? node : undefined;
    const target = this.#aliases.get(node);
    if (target !== undefined && !this.#open.has(target)) return target;
    const flaw = target === undefined ? 'without an anchor before it' : 'inside the value of its anchor';
    this.#document.reportAt(
      offset,
      segments,
      `the alias *${node.source} ${flaw}`,
      `an alias of an earlier &${node.source}`,
    );
    return undefined;
  }

  #isTooMuch(segments: readonly Segment[], offset: number): boolean {
    if (segments.length <= MAX_DEPTH && ++this.#values <= MAX_VALUES) return false;
    const known = this.#document.problems.some(({ found }) => found === TOO_MUCH);
    if (!known) this.#document.reportAt(offset, segments, TOO_MUCH, 'fewer nested values and aliases');
    return true;
  }
}

function offsetOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

/** The target of each alias: the nearest anchor of its name before it. */
function aliasTargets(yaml: Document): Map<unknown, Node> {
  const anchors = new Map<string, Node>();
  const targets = new Map<unknown, Node>();
  visit(yaml, {
    Node: (_key, node) => {
      if (isAlias(node)) {
        const target = anchors.get(node.source);
        if (target !== undefined) targets.set(node, target);
      } else if (node.anchor !== undefined) anchors.set(node.anchor, node);
    },
  });
  return targets;
}
