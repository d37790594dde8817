import { describe, expect, test } from 'vitest';
import {
  openState,
  type RequestState,
  requestDigest,
  sealState,
} from '../../../../src/eras/modern/client/request-state.js';
import type { Principal } from '../../../../src/exchange/credentials.js';
import { Sealer } from '../../../../src/exchange/utils/sealer.js';
import { scanned } from '../../../support/json-node.js';

const STATE: RequestState = {
  instance: 'i',
  call: 'c',
  round: 3,
  principal: 'p "é' as Principal,
  digest: 'd',
  expiresAt: 1_800_000_000_000,
};
const sealer = new Sealer(['a key of enough length']);

test('a state opens as it was sealed, on its route only', () => {
  const token = sealState(sealer, '/mcp', STATE);
  expect(openState(sealer, '/mcp', token)).toEqual(STATE);
  for (const route of ['/', '/mcp/', '/MCP', '', 'mcp'])
    expect(openState(sealer, route, token)).toBeUndefined();
  expect(token).toMatch(/^[\w-]+$/);
});

test('two states with the same content differ, and do not show it', () => {
  const tokens = [1, 2].map(() => sealState(sealer, '/mcp', STATE));
  expect(tokens[0]).not.toBe(tokens[1]);
  for (const token of tokens) expect(Buffer.from(token, 'base64url').includes('1800000000000')).toBe(false);
});

test('an old key opens, an unknown one does not', () => {
  const token = sealState(sealer, '/mcp', STATE);
  expect(openState(new Sealer(['a newer key, also long', 'a key of enough length']), '/mcp', token)).toEqual(
    STATE,
  );
  expect(openState(new Sealer(['a newer key, also long']), '/mcp', token)).toBeUndefined();
  expect(openState(new Sealer([]), '/mcp', token)).toBeUndefined();
});

describe('the digest of a request', () => {
  const digest = (params: string | undefined, method = 'tools/call'): string => {
    if (params === undefined)
      return requestDigest({ method, bytes: Buffer.alloc(0), params: undefined, forwarded: {} });
    const { bytes, node } = scanned(params);
    return requestDigest({ method, bytes, params: node, forwarded: {} });
  };

  test.each([
    ['{"name":"a","arguments":{"x":1}}', '{"arguments":{"x":1},"name":"a"}'],
    ['{"a":{"x":[{"p":1,"q":2}]}}', '{ "a" : {"x" : [ {"q":2, "p":1} ] } }'],
    ['{"name":"a"}', '{"name":"a","_meta":{"progressToken":1}}'],
    ['{"name":"a"}', '{"requestState":"s","name":"a","inputResponses":{"k":{}}}'],
    ['{"name":"a"}', '{"\\u006eame":"a"}'],
    ['{}', undefined],
    ['{}', '{"_meta":{}}'],
  ])('is the same for %s and %s', (a, b) => {
    expect(digest(a)).toBe(digest(b));
  });

  test.each([
    ['{"name":"a"}', '{"name":"b"}'],
    ['{"n":1}', '{"n":"1"}'],
    ['{"n":1}', '{"n":1.0}'],
    ['{"n":12345678901234567890}', '{"n":12345678901234567891}'],
    ['{"n":null}', '{}'],
    ['{"l":[1,2]}', '{"l":[2,1]}'],
    ['{"l":[[1],[2]]}', '{"l":[[1,2]]}'],
    ['{"l":[]}', '{"l":{}}'],
    ['{"a":"b\\",\\"c"}', '{"a":"b","c":""}'],
    ['{"a":1,"b":2}', '{"a":{"b":2},"b":1}'],
    ['{"a":1,"a":2}', '{"a":2,"a":1}'],
    // Only at the top do these names say something about the try.
    ['{"arguments":{"_meta":1}}', '{"arguments":{"_meta":2}}'],
    ['{"arguments":{"requestState":"a"}}', '{"arguments":{"requestState":"b"}}'],
    ['{"é":1}', '{"e\\u0301":1}'],
  ])('differs for %s and %s', (a, b) => {
    expect(digest(a)).not.toBe(digest(b));
  });

  test('differs for another method', () => {
    expect(digest('{"name":"a"}')).not.toBe(digest('{"name":"a"}', 'prompts/get'));
    expect(digest('{}', 'a')).not.toBe(digest(undefined, 'b'));
  });

  test.each([63, 64, 65, 500, 5_000])('is computed for %i levels', (levels) => {
    const nested = (value: string): string => `${'{"a":'.repeat(levels)}${value}${'}'.repeat(levels)}`;
    expect(digest(nested('1'))).toBe(digest(nested('1')));
    expect(digest(nested('1'))).not.toBe(digest(nested('2')));
  });
});
