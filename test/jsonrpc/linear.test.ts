import { describe, expect, test } from 'vitest';
import { downgradeContent } from '../../src/eras/legacy/wire/content.js';
import { featuresFor } from '../../src/eras/legacy/wire/revisions.js';
import { withoutAnnotations } from '../../src/eras/modern/wire/header-annotations.js';
import { paramHeaderProblem, paramHeaderValues } from '../../src/eras/modern/wire/param-headers.js';
import { toolTraits } from '../../src/eras/modern/wire/tool-traits.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  mentions,
  parseBody,
  parseLenientFrames,
  Rope,
  scanJson,
  writeObject,
} from '../../src/jsonrpc/index.js';

const times = (count: number, make: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => make(i)).join(',');

/** A message of `size` parts, and what is done with it. */
type Work = (size: number) => () => unknown;

const parsed = (text: string): [Buffer, JsonNode] => {
  const bytes = Buffer.from(text);
  return [bytes, scanJson(bytes, 2)];
};
const tools = (size: number, schema: string): [Buffer, JsonNode] =>
  parsed(
    `[${times(size, (i) => `{"name":"t${i}","description":"${'d'.repeat(200)}","inputSchema":${schema}}`)}]`,
  );
const ANNOTATED = '{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}';
const OLDEST = featuresFor('2024-11-05');

const WORKS: Record<string, Work> = {
  'traits of tools without annotations': (size) => {
    const [bytes, list] = tools(size, '{"type":"object"}');
    return () => elementsOf(bytes, list).map((tool) => toolTraits(bytes, tool));
  },
  'traits of tools with annotations': (size) => {
    const [bytes, list] = tools(size, ANNOTATED);
    return () => elementsOf(bytes, list).map((tool) => toolTraits(bytes, tool));
  },
  'a text that only the end of the message mentions': (size) => {
    const [bytes, list] = parsed(`[${times(size, () => '{"a":1}')},"needle"]`);
    return () => elementsOf(bytes, list).filter((element) => mentions(bytes, element, 'needle'));
  },
  'the annotations of one tool with many properties': (size) => {
    const [bytes, schema] = parsed(
      `{"properties":{${times(size, (i) => `"p${i}":{"type":"string","x-mcp-header":"H${i}"}`)}}}`,
    );
    return () => withoutAnnotations(bytes, schema).toBuffer();
  },
  'headers among many arguments': (size) => {
    const [bytes, args] = parsed(`{${times(size, (i) => `"a${i}":"v"`)}}`);
    const headers = Array.from({ length: 200 }, (_, i) => ({ header: `mcp-param-${i}`, path: [`a${i}`] }));
    return () => [paramHeaderValues(bytes, args, headers), paramHeaderProblem(bytes, args, headers, [])];
  },
  'edits of many members': (size) => {
    const [bytes, node] = parsed(`{${times(size, (i) => `"m${i}":${i}`)}}`);
    const edits = new Map(
      Array.from({ length: size }, (_, i) => [`m${i * 2}`, i % 3 === 0 ? undefined : '0']),
    );
    return () => {
      const out = new Rope();
      writeObject(out, bytes, node, edits);
      return out.toBuffer();
    };
  },
  'content blocks in the words of an older revision': (size) => {
    const [bytes, content] = parsed(`[${times(size, () => '{"type":"audio","mimeType":"a/b","data":""}')}]`);
    return () => downgradeContent(bytes, content, OLDEST)?.toBuffer();
  },
  'messages in an array of a server': (size) => {
    const body = Buffer.from(
      `[${times(Math.min(size, 1_000), (i) => `{"jsonrpc":"2.0","id":${i},"result":{}}`)}]`,
    );
    return () => parseLenientFrames(body);
  },
  'members of a request': (size) => {
    // An object of a message has 4,096 members at most.
    const half = size / 2;
    const body = Buffer.from(
      `{"jsonrpc":"2.0","id":1,"method":"m","params":{${times(half, (i) => `"k${i}":0`)}},${times(half, (i) => `"x${i}":0`)}}`,
    );
    return () => {
      const frame = parseBody(body);
      return frame.type === 'request' && frame.params && getMember(body, frame.params, '_meta');
    };
  },
};

/** Processor time of this process in milliseconds: time in which the machine did other work does not count. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** The shortest of several runs, in milliseconds of processor time. */
function shortest(run: () => unknown): number {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 5; i++) {
    const begun = cpuMs();
    run();
    best = Math.min(best, cpuMs() - begun);
  }
  return best;
}

const SMALL = 1_000;
const FACTOR = 8;
/** A quadratic pass takes FACTOR times as long per part; half of that is far from both. */
const MOST = FACTOR * (FACTOR / 2);
/** Below this many milliseconds a run is mostly noise. */
const FLOOR_MS = 2;

describe('the time that a message takes grows with its size and no faster', () => {
  test.each(Object.entries(WORKS))('%s', (_name, work) => {
    const small = work(SMALL);
    const large = work(SMALL * FACTOR);
    // Compiles the code first.
    shortest(small);
    expect(shortest(large)).toBeLessThan(Math.max(shortest(small), FLOOR_MS) * MOST);
  });
});
