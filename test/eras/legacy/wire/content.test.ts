import { describe, expect, test } from 'vitest';
import { downgradeContent } from '../../../../src/eras/legacy/wire/content.js';
import { featuresFor } from '../../../../src/eras/legacy/wire/revisions.js';
import { scanned } from '../../../support/json-node.js';

const downgraded = (text: string, revision: string) => {
  const { bytes, node } = scanned(text);
  return downgradeContent(bytes, node, featuresFor(revision))?.toBuffer().toString();
};
const text = (value: string) => JSON.stringify({ type: 'text', text: value });

describe.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])('%s', (revision) => {
  const newer = revision >= '2025-06-18';
  test.each([
    ['{"type":"text","text":"\\u0041"}', undefined],
    ['{"type":"image","data":"","mimeType":"a/b"}', undefined],
    ['{"type":"resource","resource":{}}', undefined],
    [
      '{"type":"audio","data":"","mimeType":"audio/wav"}',
      revision >= '2025-03-26' ? undefined : text('[audio audio/wav]'),
    ],
    ['{"type":"audio"}', revision >= '2025-03-26' ? undefined : text('[audio ]')],
    ['{"type":"resource_link","uri":"a:\\u0062"}', newer ? undefined : text('a:b')],
    ['{"type":"resource_link"}', newer ? undefined : text('[resource link]')],
    ['{"type":"hologram"}', newer ? undefined : text('[hologram]')],
    ['{"type":"constructor"}', newer ? undefined : text('[constructor]')],
    ['{"type":7}', undefined],
    ['{}', undefined],
  ])('has in place of the block %s: %s', (block, expected) => {
    expect(downgraded(block, revision)).toBe(expected);
    expect(downgraded(`[${block}]`, revision)).toBe(expected === undefined ? undefined : `[${expected}]`);
    const kept = '{ "type":"text","text":"1.0"}';
    expect(downgraded(`[ ${kept} , ${block} ]`, revision)).toBe(
      expected === undefined ? undefined : `[${kept},${expected}]`,
    );
  });

  test.each(['[]', 'null', '"text"', '7'])('leaves %s alone', (content) => {
    expect(downgraded(content, revision)).toBeUndefined();
  });
});
