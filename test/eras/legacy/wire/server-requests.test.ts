import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { featuresFor } from '../../../../src/eras/legacy/wire/revisions.js';
import { adaptServerRequest } from '../../../../src/eras/legacy/wire/server-requests.js';
import type { ServerRequest } from '../../../../src/exchange/types.js';
import { parseFrame, type RequestFrame } from '../../../../src/jsonrpc/index.js';

function question(method: string, params: string | undefined): ServerRequest {
  const text = `{"jsonrpc":"2.0","id":"eragate:1","method":"${method}"${params === undefined ? '' : `,"params":${params}`}}`;
  const { id, bytes, params: node } = parseFrame(Buffer.from(text)) as RequestFrame;
  return { id, method, bytes, params: node };
}

/** Text of the params as a client of the revision gets them. */
function adapted(method: string, params: string, revision: string): string {
  const { question: result } = adaptServerRequest(
    question(method, params),
    featuresFor(revision),
    randomUUID,
  );
  expect(JSON.parse(result.bytes.toString())).toMatchObject({ jsonrpc: '2.0', id: 'eragate:1', method });
  const node = result.params;
  return node === undefined ? '' : result.bytes.toString('utf8', node.start, node.end);
}

const block = (text: string): string => `{"type":"text","text":"${text}"}`;

describe('a question of a modern server', () => {
  test.each<[string, string, string, string]>([
    [
      'elicitation/create',
      '2025-11-25',
      '{"mode":"form","message":"é","n":1.0}',
      '{"mode":"form","message":"é","n":1.0}',
    ],
    ['elicitation/create', '2025-11-25', '{"message":"?"}', '{"message":"?","mode":"form"}'],
    ['elicitation/create', '2025-06-18', '{"mode":"form","message":"?"}', '{"message":"?"}'],
    ['elicitation/create', '2025-06-18', '{"message":"?"}', '{"message":"?"}'],
    ['elicitation/create', '2025-06-18', '{"message":"?","_meta":{"progressToken":1}}', '{"message":"?"}'],
    [
      'sampling/createMessage',
      '2025-11-25',
      '{"_meta":{"progressToken":"t","a/b":1.0},"messages":[]}',
      '{"_meta":{"a/b":1.0},"messages":[]}',
    ],
    [
      'sampling/createMessage',
      '2025-11-25',
      `{"messages":[{"role":"user","content":[${block('a')},${block('b')}]}]}`,
      `{"messages":[{"role":"user","content":[${block('a')},${block('b')}]}]}`,
    ],
    [
      'sampling/createMessage',
      '2025-06-18',
      `{"messages":[{"role":"user","content":[${block('a')},${block('b')}]},{"role":"assistant","content":${block('c')}}]}`,
      `{"messages":[{"role":"user","content":${block('a')}},{"role":"user","content":${block('b')}},{"role":"assistant","content":${block('c')}}]}`,
    ],
    [
      'sampling/createMessage',
      '2025-06-18',
      '{"messages":[{"role":"user","content":[]}]}',
      '{"messages":[]}',
    ],
    ['sampling/createMessage', '2025-06-18', '{"messages":7}', '{"messages":7}'],
    ['roots/list', '2025-11-25', '{"_meta":{"a/b":1}}', '{"_meta":{"a/b":1}}'],
    ['roots/list', '2025-11-25', '{"_meta":{"progressToken":1}}', '{}'],
  ])('%s, to a client of %s: %s becomes %s', (method, revision, params, expected) => {
    expect(adapted(method, params, revision)).toBe(expected);
  });

  test('without params goes as it is', () => {
    const asked = question('roots/list', undefined);
    expect(adaptServerRequest(asked, featuresFor('2025-11-25'), randomUUID)).toEqual({
      question: asked,
      elicitation: undefined,
    });
  });

  test('that sends the client to a page gets an id, a new one each time', () => {
    const ids = [1, 2].map(() => {
      const { question: result, elicitation } = adaptServerRequest(
        question('elicitation/create', '{"mode":"url","url":"https://a.example/?n=1","message":"?"}'),
        featuresFor('2025-11-25'),
        randomUUID,
      );
      const { params } = JSON.parse(result.bytes.toString());
      expect(params).toEqual({
        mode: 'url',
        url: 'https://a.example/?n=1',
        message: '?',
        elicitationId: elicitation?.elicitationId,
      });
      expect(elicitation?.url).toBe('https://a.example/?n=1');
      return elicitation?.elicitationId;
    });
    expect(ids[0]).toMatch(/^[\w-]{16,}$/);
    expect(ids[0]).not.toBe(ids[1]);
  });
});
