import { describe, expect, test } from 'vitest';
import { changeResourceMetadata, resourceMetadataOf } from '../../src/authorization/challenge.js';

const change = (header: string) => changeResourceMetadata(header, (url) => `new:${url}`);

describe('the metadata in a challenge is changed, and nothing else', () => {
  test.each([
    ['Bearer resource_metadata="https://a/b"', 'Bearer resource_metadata="new:https://a/b"'],
    [
      'Bearer error="invalid_token", resource_metadata="https://a/b", scope="x y"',
      'Bearer error="invalid_token", resource_metadata="new:https://a/b", scope="x y"',
    ],
    [
      'Bearer resource_metadata=https://a/b, scope="x"',
      'Bearer resource_metadata="new:https://a/b", scope="x"',
    ],
    ['Bearer Resource_Metadata = "https://a/b"', 'Bearer Resource_Metadata = "new:https://a/b"'],
    [
      'DPoP algs="ES256", resource_metadata="https://a/1", Bearer resource_metadata="https://a/2"',
      'DPoP algs="ES256", resource_metadata="new:https://a/1", Bearer resource_metadata="new:https://a/2"',
    ],
    [
      'Negotiate dGVzdA==, Bearer resource_metadata="u"',
      'Negotiate dGVzdA==, Bearer resource_metadata="new:u"',
    ],
  ])('%s', (header, expected) => {
    expect(change(header)).toBe(expected);
  });
});

describe('what only looks like it is left alone', () => {
  test.each([
    'Bearer error_description="see resource_metadata=https://a/b, or ask"',
    'Bearer error_description="he said \\"resource_metadata=x\\"", scope="y"',
    'Bearer my_resource_metadata="https://a/b"',
    'Bearer resource_metadata_uri="https://a/b"',
    'Bearer realm="not closed, resource_metadata=https://a/b',
    'Bearer',
    'Basic realm="a"',
    '',
    ', ,,==',
  ])('%s', (header) => {
    expect(change(header)).toBe(header);
  });
});

test('a URL that is to stay stays as it was written', () => {
  const header = 'Bearer resource_metadata=https://a/b';
  expect(changeResourceMetadata(header, () => undefined)).toBe(header);
});

test('the first one of several is read', () => {
  expect(resourceMetadataOf('DPoP x="y", Bearer resource_metadata="1", resource_metadata="2"')).toBe('1');
  expect(resourceMetadataOf('Bearer scope="a"')).toBeUndefined();
});

test('a long header is read in time that grows with its length alone', () => {
  const long = `Bearer ${'a='.repeat(30_000)}${'"\\'.repeat(15_000)}`;
  const began = performance.now();
  expect(change(long)).toBe(long);
  expect(performance.now() - began).toBeLessThan(2_000);
});
