import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { featuresFor } from '../../../../src/eras/legacy/wire/revisions.js';
import {
  downgradeAnswer,
  downgradeServerRequest,
  encodeServerRequest,
  missingCapability,
} from '../../../../src/eras/legacy/wire/server-requests.js';
import type { ServerRequest } from '../../../../src/exchange/channel.js';
import { readCapabilities } from '../../../../src/exchange/client-capabilities.js';
import { parseFrame, type RequestFrame } from '../../../../src/jsonrpc/index.js';

function requestOf(method: string, params: string | undefined): ServerRequest {
  const text = `{"jsonrpc":"2.0","id":"eragate:1","method":"${method}"${params === undefined ? '' : `,"params":${params}`}}`;
  const { id, bytes, params: node } = parseFrame(Buffer.from(text)) as RequestFrame;
  return { id, method, bytes, params: node };
}

/** Text of the params as a client of the revision gets them. */
function encoded(method: string, params: string, revision: string): string {
  const { request: result } = encodeServerRequest(requestOf(method, params), {
    features: featuresFor(revision),
    newElicitationId: randomUUID,
  });
  expect(JSON.parse(result.bytes.toString())).toMatchObject({ jsonrpc: '2.0', id: 'eragate:1', method });
  const node = result.params;
  return node === undefined ? '' : result.bytes.toString('utf8', node.start, node.end);
}

const block = (text: string): string => `{"type":"text","text":"${text}"}`;

const NEWEST = { features: featuresFor('2025-11-25'), newElicitationId: randomUUID };

describe('a request of a modern server', () => {
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
    expect(encoded(method, params, revision)).toBe(expected);
  });

  test('without params goes as it is', () => {
    const asked = requestOf('roots/list', undefined);
    expect(encodeServerRequest(asked, NEWEST)).toEqual({ request: asked, elicitation: undefined });
  });

  test.each([
    [undefined, '{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}'],
    [
      '{"_meta":{"a":1.0,"progressToken":1}}',
      '{"_meta":{"a":1.0,"io.modelcontextprotocol/related-task":{"taskId":"t"}}}',
    ],
  ])('with params %s names the task that it belongs to', (params, expected) => {
    const { request } = encodeServerRequest(requestOf('roots/list', params), { ...NEWEST, task: 't' });
    const { start, end } = request.params ?? { start: 0, end: 0 };
    expect(request.bytes.toString('utf8', start, end)).toBe(expected);
  });

  test('that sends the client to a page gets an id, a new one each time', () => {
    const ids = [1, 2].map(() => {
      const { request: result, elicitation } = encodeServerRequest(
        requestOf('elicitation/create', '{"mode":"url","url":"https://a.example/?n=1","message":"?"}'),
        NEWEST,
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

test.each([
  ['elicitation/create', '{"mode":"form","message":"?"}', '2025-06-18', '{"message":"?"}'],
  ['elicitation/create', '{"mode":"form","message":"?"}', '2025-11-25', '{"mode":"form","message":"?"}'],
  ['elicitation/create', '{"message":"?"}', '2025-11-25', '{"message":"?"}'],
  [
    'sampling/createMessage',
    `{"messages":[{"content":[${block('a')}]}]}`,
    '2025-06-18',
    `{"messages":[{"content":${block('a')}}]}`,
  ],
  [
    'sampling/createMessage',
    '{"messages":[{"content":{"type":"audio","mimeType":"a/b"}},7]}',
    '2024-11-05',
    `{"messages":[{"content":${block('[audio a/b]')}},7]}`,
  ],
  ['vendor/ask', '{"mode":"form"}', '2024-11-05', '{"mode":"form"}'],
])('%s %s of a legacy server becomes, for a client of %s, %s', (method, params, revision, expected) => {
  const { bytes, params: node } = downgradeServerRequest(requestOf(method, params), featuresFor(revision));
  expect(bytes.toString('utf8', node?.start, node?.end)).toBe(expected);
});

test.each([
  ['elicitation/create', '{}', '{}', 'elicitation.form'],
  ['elicitation/create', '{}', '{"elicitation":{"form":{}}}', undefined],
  ['elicitation/create', '{"mode":"url"}', '{"elicitation":{"form":{}}}', 'elicitation.url'],
  ['elicitation/create', '{"mode":"url"}', '{"elicitation":{"url":{}}}', undefined],
  ['sampling/createMessage', '{}', '{"sampling":{}}', undefined],
  ['sampling/createMessage', '{"tools":[]}', '{"sampling":{}}', 'sampling.tools'],
  ['sampling/createMessage', '{"toolChoice":{}}', '{"sampling":{"tools":{}}}', undefined],
  ['sampling/createMessage', '{}', '{"sampling":null}', 'sampling'],
  ['roots/list', '{}', '{}', 'roots'],
  ['roots/list', '{}', '{"roots":{}}', undefined],
  ['vendor/ask', '{}', '{}', undefined],
  ['constructor', '{}', '{}', undefined],
])('for %s %s a client with %s lacks %s', (method, params, declared, expected) => {
  expect(missingCapability(requestOf(method, params), readCapabilities(declared))).toBe(expected);
});

const SAMPLING = 'sampling/createMessage';
test.each<[string, string, string, string | undefined]>([
  [SAMPLING, '2025-11-25', `{"role":"assistant","content":[${block('a')},${block('b')}]}`, undefined],
  [SAMPLING, '2025-06-18', `{"role":"assistant","content":${block('a')},"n":1.0}`, undefined],
  [SAMPLING, '2025-06-18', `{"content":[${block('a')}],"n":1.0}`, `{"content":${block('a')},"n":1.0}`],
  [
    SAMPLING,
    '2025-06-18',
    '{"content":[{"type":"image","data":"AA=="}]}',
    '{"content":{"type":"image","data":"AA=="}}',
  ],
  [SAMPLING, '2024-11-05', `{"content":[${block('a')},${block('b')}]}`, `{"content":${block('a\\nb')}}`],
  [
    SAMPLING,
    '2025-06-18',
    `{"content":[${block('a')},{"type":"tool_use","name":"t"},7]}`,
    `{"content":${block('a')}}`,
  ],
  [SAMPLING, '2025-06-18', '{"content":[]}', `{"content":${block('')}}`],
  [SAMPLING, '2025-06-18', '{}', undefined],
  ['elicitation/create', '2025-06-18', `{"action":"accept","content":[${block('a')}]}`, undefined],
  ['roots/list', '2025-06-18', '{"roots":[]}', undefined],
])('to a server of %s %s, the answer %s is %s', (method, revision, text, expected) => {
  const answer = downgradeAnswer(method, { result: Buffer.from(text) }, featuresFor(revision));
  expect('result' in answer && answer.result.toString()).toBe(expected ?? text);
});

test('an error is passed on as it is', () => {
  const answer = { error: Buffer.from('{"code":-1,"message":"no","data":[1.0]}') };
  expect(downgradeAnswer(SAMPLING, answer, featuresFor('2025-06-18'))).toBe(answer);
});
