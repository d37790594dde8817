import { expect, test } from 'vitest';
import { rewriteParams } from '../../src/exchange/rewrite-params.js';
import { paramsOf } from '../support/json-node.js';

const KEYS = ['e/version', 'e/caps'];

interface Row {
  what: string;
  params: string | undefined;
  meta?: Record<string, string>;
  edits?: Record<string, string | undefined>;
  out: string;
}

const ROWS: Row[] = [
  { what: 'no params at all', params: undefined, out: '{}' },
  { what: 'no params, with meta', params: undefined, meta: { a: '1' }, out: '{"_meta":{"a":1}}' },
  {
    what: 'nothing to change',
    params: '{ "b" : 1.0 , "_meta":{"k":1} }',
    out: '{ "b" : 1.0 , "_meta":{"k":1} }',
  },
  {
    what: 'an envelope alone',
    params: '{"name":"t","_meta":{"e/version":"x","e/caps":{}}}',
    out: '{"name":"t"}',
  },
  { what: 'an envelope in front', params: '{"_meta":{"e/caps":{}},"name":"t"}', out: '{"name":"t"}' },
  {
    what: 'an envelope among other keys',
    params: '{"_meta":{"a":1.0,"e/version":"x","b":"\\u0041","e/caps":{}},"name":"t"}',
    out: '{"_meta":{"a":1.0,"b":"\\u0041"},"name":"t"}',
  },
  {
    what: 'an envelope whose keys come twice',
    params: '{"_meta":{"e/version":1,"k":1,"e/version":2}}',
    out: '{"_meta":{"k":1}}',
  },
  {
    what: 'an envelope whose keys are written with escapes',
    params: '{"_meta":{"\\u0065/version":1,"k":1}}',
    out: '{"_meta":{"k":1}}',
  },
  {
    what: 'a token to replace',
    params: '{"_meta":{"progressToken":"mine","k":2}}',
    meta: { progressToken: '7' },
    out: '{"_meta":{"progressToken":7,"k":2}}',
  },
  {
    what: 'an envelope to replace by another',
    params: '{"name":"t","_meta":{"e/version":"old"}}',
    meta: { 'e/version': '"new"', 'e/caps': '{"a":{}}' },
    out: '{"name":"t","_meta":{"e/version":"new","e/caps":{"a":{}}}}',
  },
  {
    what: 'a _meta that is none',
    params: '{"_meta":null,"a":1}',
    meta: { k: '1' },
    out: '{"_meta":{"k":1},"a":1}',
  },
  { what: 'a _meta that is none, left alone', params: '{"_meta":[],"a":1}', out: '{"_meta":[],"a":1}' },
  { what: 'an empty _meta', params: '{"_meta":{},"a":1}', out: '{"_meta":{},"a":1}' },
  {
    what: 'members to change beside',
    params: '{"a":1,"inputResponses":{},"_meta":{"e/version":1}}',
    edits: { inputResponses: undefined, requestState: '"s"' },
    out: '{"a":1,"requestState":"s"}',
  },
];

test.each(ROWS)('params with $what become $out', ({ params, meta, edits, out }) => {
  const given = paramsOf(params, KEYS);
  const rope = rewriteParams(
    given,
    meta === undefined ? undefined : new Map(Object.entries(meta)),
    edits === undefined ? undefined : new Map(Object.entries(edits)),
  );
  expect(rope.toBuffer().toString()).toBe(out);
});
