import { describe, expect, test } from 'vitest';
import {
  answerOf,
  inputRequest,
  lackingCapabilities,
  refusalOf,
  serverRequestKind,
  takesMode,
  urlElicitations,
} from '../../../../src/eras/modern/wire/server-requests.js';
import type { ServerRequest } from '../../../../src/exchange/channel.js';
import { scanned } from '../../../support/json-node.js';

function question(method: string, params: string | undefined): ServerRequest {
  const { bytes, node } = scanned(params ?? '{}');
  return {
    id: '1',
    method,
    bytes,
    params: params === undefined ? undefined : node,
  } as unknown as ServerRequest;
}

test.each([
  ['elicitation/create', 'elicitation'],
  ['sampling/createMessage', 'sampling'],
  ['roots/list', 'roots'],
  ['ping', undefined],
  ['tools/list', undefined],
  ['', undefined],
  ['constructor', undefined],
  ['__proto__', undefined],
])('%s is a server request of the kind %s', (method, kind) => {
  expect(serverRequestKind(method)).toBe(kind);
});

test.each<[unknown, boolean, boolean]>([
  [{}, true, false],
  [{ form: {} }, true, false],
  [{ url: {} }, false, true],
  [{ form: {}, url: {} }, true, true],
  [{ form: true }, true, false],
  [{ url: true }, true, false],
  [undefined, false, false],
  [null, false, false],
  [true, false, false],
  [[], false, false],
])('a client that declares the elicitation %j accepts forms: %s, URLs: %s', (declared, forms, urls) => {
  expect([takesMode(declared, 'form'), takesMode(declared, 'url')]).toEqual([forms, urls]);
});

test.each<[string, string | undefined, object, object | undefined]>([
  ['elicitation/create', '{"mode":"form"}', { elicitation: {} }, undefined],
  ['elicitation/create', '{}', {}, { elicitation: { form: {} } }],
  ['elicitation/create', undefined, {}, { elicitation: { form: {} } }],
  ['elicitation/create', '{"mode":"url"}', { elicitation: {} }, { elicitation: { url: {} } }],
  ['elicitation/create', '{"mode":"url"}', { elicitation: { url: {} } }, undefined],
  ['elicitation/create', '{"mode":"voice"}', { elicitation: { url: {} } }, { elicitation: { form: {} } }],
  ['sampling/createMessage', '{}', { sampling: {} }, undefined],
  ['sampling/createMessage', '{}', {}, { sampling: {} }],
  ['sampling/createMessage', '{"tools":[]}', {}, { sampling: { tools: {} } }],
  ['sampling/createMessage', '{"tools":[]}', { sampling: {} }, { sampling: { tools: {} } }],
  ['sampling/createMessage', '{"toolChoice":{}}', { sampling: { tools: {} } }, undefined],
  ['roots/list', undefined, { roots: {} }, undefined],
  ['roots/list', undefined, { roots: 1 }, { roots: {} }],
])('%s %s to a client with %j lacks %j', (method, params, declared, lacking) => {
  expect(lackingCapabilities(question(method, params), declared as Record<string, unknown>)).toEqual(lacking);
});

describe('the entry of inputRequests', () => {
  test.each<[string, string | undefined, string]>([
    [
      'elicitation/create',
      '{"message":"é \\u00e9","requestedSchema":{"type":"object"},"n":1.0}',
      '{"method":"elicitation/create","params":{"message":"é \\u00e9","requestedSchema":{"type":"object"},"n":1.0}}',
    ],
    [
      'elicitation/create',
      '{"mode":"url","elicitationId":"e","url":"https://a.example","task":{"ttl":1},"message":""}',
      '{"method":"elicitation/create","params":{"mode":"url","url":"https://a.example","message":""}}',
    ],
    [
      'sampling/createMessage',
      '{"messages":[],"_meta":{"progressToken":1,"a/b":2},"maxTokens":1e2}',
      '{"method":"sampling/createMessage","params":{"messages":[],"_meta":{"a/b":2},"maxTokens":1e2}}',
    ],
    [
      'sampling/createMessage',
      '{"_meta":{"progressToken":1,"io.modelcontextprotocol/related-task":{"taskId":"t"}},"maxTokens":1}',
      '{"method":"sampling/createMessage","params":{"maxTokens":1}}',
    ],
    // The name is that of the id of a page, and of nothing else.
    [
      'sampling/createMessage',
      '{"elicitationId":"e"}',
      '{"method":"sampling/createMessage","params":{"elicitationId":"e"}}',
    ],
    ['elicitation/create', '{"_meta":7}', '{"method":"elicitation/create","params":{"_meta":7}}'],
    ['elicitation/create', undefined, '{"method":"elicitation/create","params":{}}'],
    ['roots/list', undefined, '{"method":"roots/list"}'],
    ['roots/list', '{}', '{"method":"roots/list","params":{}}'],
  ])('of %s %s is %s', (method, params, expected) => {
    const entry = inputRequest(question(method, params)).toBuffer().toString();
    expect(entry).toBe(expected);
  });
});

test.each([
  ['elicitation/create', '{"action":"cancel"}'],
  ['sampling/createMessage', undefined],
  ['roots/list', undefined],
])('for %s without an answer, the server gets %s', (method, text) => {
  const refusal = refusalOf(method);
  expect(refusal === undefined ? undefined : 'result' in refusal && refusal.result.toString()).toBe(text);
});

test.each([
  ['{"action":"accept","content":{"n":12345678901234567890}}', undefined],
  ['{"resultType":"complete","action":"decline"}', '{"action":"decline"}'],
  ['{"role":"assistant","_meta":{"a":1},"resultType":"complete"}', '{"role":"assistant","_meta":{"a":1}}'],
  ['{}', undefined],
])('the answer %s is sent to the server unchanged, or as %s', (text, expected) => {
  const { bytes, node } = scanned(text);
  const answer = answerOf(bytes, node);
  expect('result' in answer && answer.result.toString()).toBe(expected ?? text);
});

test.each<[unknown, unknown]>([
  [
    { elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://a.example', message: 'm' }] },
    [{ method: 'elicitation/create', params: { mode: 'url', url: 'https://a.example', message: 'm' } }],
  ],
  [
    { elicitations: [{ url: 'https://a.example' }, { url: 'https://b.example', mode: 'form' }] },
    [
      { method: 'elicitation/create', params: { message: '', url: 'https://a.example', mode: 'url' } },
      { method: 'elicitation/create', params: { message: '', url: 'https://b.example', mode: 'url' } },
    ],
  ],
  [{ elicitations: [null, 7, {}, { url: 7 }] }, undefined],
  [{ elicitations: [] }, undefined],
  [{ elicitations: {} }, undefined],
  [{}, undefined],
  [[], undefined],
  ['text', undefined],
  [null, undefined],
])('an error with the data %j has the input requests %j', (data, expected) => {
  const requests = urlElicitations(JSON.stringify(data));
  expect(requests?.map((request) => JSON.parse(request.toBuffer().toString()))).toEqual(expected);
});
