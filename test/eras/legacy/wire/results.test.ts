import { describe, expect, test } from 'vitest';
import { decodeResult, encodeResult } from '../../../../src/eras/legacy/wire/results.js';
import { featuresFor } from '../../../../src/eras/legacy/wire/revisions.js';
import { edited, resultOutcome, scanned, written } from '../../../support/json-node.js';

describe('a result of a legacy backend', () => {
  const neutral = (method: string, text: string) => {
    const { bytes, node } = scanned(text);
    const edits = new Map();
    decodeResult(method, bytes, node, edits);
    return edited(text, edits);
  };

  test.each([
    ['tools/call', '{"content":[ 1.0 ]}', '{"content":[ 1.0 ]}'],
    ['tools/call', '{"isError":true}', '{"isError":true,"content":[]}'],
    ['tools/call', '{"content":null}', '{"content":[]}'],
    ['tools/call', '{"task":{"taskId":"t"}}', '{"content":[]}'],
    [
      'tools/list',
      '{"tools":[{"name":"a","inputSchema":{ }}]}',
      '{"tools":[{"name":"a","inputSchema":{ }}]}',
    ],
    [
      'tools/list',
      '{"tools":[{"execution":{},"name":"a"},{"name":"b"}]}',
      '{"tools":[{"name":"a"},{"name":"b"}]}',
    ],
    ['tools/list', '{"tools":{"execution":1}}', '{"tools":{"execution":1}}'],
    ['prompts/list', '{"execution":{}}', '{"execution":{}}'],
  ])('of %s, %s is %s in the neutral form', (method, text, expected) => {
    expect(neutral(method, text)).toBe(expected);
  });
});

describe('a neutral result', () => {
  const encoded = (method: string, text: string, revision = '2025-11-25', objectOutput?: boolean) => {
    const outcome = resultOutcome(text, { objectOutput });
    encodeResult(method, outcome, featuresFor(revision));
    return written(outcome);
  };
  const text = (value: string) => JSON.stringify({ type: 'text', text: value });

  test.each([
    ['{"content":[ ]}', '{"content":[ ]}'],
    ['{}', '{"content":[]}'],
    ['{"content":null}', '{"content":[]}'],
    ['{"content":[],"structuredContent":{"a":1.0}}', '{"content":[],"structuredContent":{"a":1.0}}'],
    [
      '{"content":[],"structuredContent":[1.0]}',
      `{"content":[${text('[1.0]')}],"structuredContent":{"result":[1.0]}}`,
    ],
    ['{"structuredContent":null}', `{"structuredContent":{"result":null},"content":[${text('null')}]}`],
    ['{"content":null,"structuredContent":7}', `{"content":[${text('7')}],"structuredContent":{"result":7}}`],
    [
      `{"content":[{"type":"image"}],"structuredContent":"é"}`,
      `{"content":[{"type":"image"},${text('"é"')}],"structuredContent":{"result":"é"}}`,
    ],
    [
      `{"content":[${text('x')}],"structuredContent":7}`,
      `{"content":[${text('x')}],"structuredContent":{"result":7}}`,
    ],
  ])('of a call, %s, is encoded as %s', (given, expected) => {
    expect(encoded('tools/call', given)).toBe(expected);
  });

  test.each([
    [
      false,
      '{"content":[],"structuredContent":{"a":1.0}}',
      '{"content":[],"structuredContent":{"result":{"a":1.0}}}',
    ],
    [true, '{"content":[],"structuredContent":{"a":1.0}}', '{"content":[],"structuredContent":{"a":1.0}}'],
    [
      false,
      '{"content":[],"structuredContent":{"a":1.0},"isError":true}',
      '{"content":[],"structuredContent":{"a":1.0},"isError":true}',
    ],
  ])(
    'of a tool whose schema describes an object (%s), %s, is encoded as %s',
    (objectOutput, given, expected) => {
      expect(encoded('tools/call', given, '2025-11-25', objectOutput)).toBe(expected);
    },
  );

  test.each(['2024-11-05', '2025-03-26'])(
    'for a client of %s repeats structured content as text',
    (revision) => {
      expect(encoded('tools/call', '{"content":[],"structuredContent":{"a":1.0}}', revision)).toBe(
        `{"content":[${text('{"a":1.0}')}],"structuredContent":{"a":1.0}}`,
      );
    },
  );

  test('of a prompt has the blocks of its messages turned into text', () => {
    const audio = '{"role":"user","content":{"type":"audio","data":"","mimeType":"a/b"}}';
    const kept = '{"role":"user","content":{ "type":"text","text":"\\u0041"}}';
    expect(encoded('prompts/get', `{"messages":[${kept},${audio},7]}`, '2024-11-05')).toBe(
      `{"messages":[${kept},{"role":"user","content":${text('[audio a/b]')}},7]}`,
    );
    expect(encoded('prompts/get', `{"messages":[ ${kept} ,${audio}]}`, '2025-03-26')).toBe(
      `{"messages":[ ${kept} ,${audio}]}`,
    );
  });

  test.each([
    ['{"name":"a","inputSchema":{"type":"object"}}', '{"name":"a","inputSchema":{"type":"object"}}'],
    [
      '{ "inputSchema":{"type":"object","x":1.0} , "outputSchema":{"type":"object"}}',
      '{ "inputSchema":{"type":"object","x":1.0} , "outputSchema":{"type":"object"}}',
    ],
    [
      '{"inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}',
      '{"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}}',
    ],
    ['{"inputSchema":{"type":"object"},"outputSchema":null}', '{"inputSchema":{"type":"object"}}'],
    ['{"inputSchema":{"type":"object"},"outputSchema":"x"}', '{"inputSchema":{"type":"object"}}'],
    [
      '{"inputSchema":{"type":"object","properties":{"a":true,"b":{ }}}}',
      '{"inputSchema":{"type":"object","properties":{"a":{},"b":{ }}}}',
    ],
    ['{"inputSchema":{"type":"array"}}', ''],
    ['{"inputSchema":true}', ''],
    ['{"name":"a"}', ''],
  ])('of a list, the tool %s, is encoded as %s', (tool, expected) => {
    expect(encoded('tools/list', `{"tools":[${tool}]}`)).toBe(`{"tools":[${expected}]}`);
  });
});
