import { describe, expect, test } from 'vitest';
import { type FrameContext, problemsOf } from '../support/schema.js';

const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};
const text = (value: string) => [{ type: 'text', text: value }];
const result = (body: object) => ({ jsonrpc: '2.0', id: 1, result: body });
const call = (method: string, params: object, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params });
const question = (params: object) => ({ method: 'elicitation/create', params });
const note = (method: string, params: object) => ({ jsonrpc: '2.0', method, params });

const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
type Row = [string, Partial<FrameContext> & { message: unknown }, RegExp | undefined];

const ROWS: Row[] = [
  [
    'a legacy result',
    { requestMethod: 'tools/call', message: result({ content: text('x') }), revision: LEGACY },
    undefined,
  ],
  [
    'resultType in an empty legacy result',
    { requestMethod: 'ping', message: result({ resultType: 'complete' }), revision: LEGACY },
    /resultType/,
  ],
  [
    'ttlMs in a legacy list',
    { requestMethod: 'tools/list', message: result({ tools: [], ttlMs: 0 }), revision: LEGACY },
    /has ttlMs/,
  ],
  [
    'structured content that is a list, in a legacy result',
    {
      requestMethod: 'tools/call',
      message: result({ content: [], structuredContent: [1] }),
      revision: LEGACY,
    },
    /structuredContent/,
  ],
  [
    'a tool whose output schema is no object, in a legacy list',
    {
      requestMethod: 'tools/list',
      message: result({
        tools: [{ name: 'a', inputSchema: { type: 'object' }, outputSchema: { type: 'array' } }],
      }),
      revision: LEGACY,
    },
    /outputSchema/,
  ],
  [
    'a result without content',
    { requestMethod: 'tools/call', message: result({}), revision: LEGACY },
    /no content/,
  ],
  [
    'audio under the oldest revision',
    {
      requestMethod: 'tools/call',
      message: result({ content: [{ type: 'audio', data: 'AA==', mimeType: 'audio/wav' }] }),
      revision: '2024-11-05',
    },
    /content of type audio/,
  ],
  [
    'the envelope in a legacy request',
    {
      direction: 'c2s',
      message: call('tools/call', { name: 'a', _meta: envelope }),
      revision: LEGACY,
    },
    /_meta has/,
  ],
  [
    'elicitation before its revision',
    {
      message: call('elicitation/create', {
        message: 'm',
        requestedSchema: { type: 'object', properties: {} },
      }),
      revision: '2025-03-26',
    },
    /came with 2025-06-18/,
  ],
  [
    'a modern result',
    {
      requestMethod: 'tools/call',
      message: result({ content: text('x'), resultType: 'complete', structuredContent: [1] }),
      revision: MODERN,
    },
    undefined,
  ],
  [
    'a modern result without resultType',
    { requestMethod: 'tools/call', message: result({ content: [] }), revision: MODERN },
    /no resultType/,
  ],
  [
    'a modern list without ttlMs and cacheScope',
    { requestMethod: 'tools/list', message: result({ tools: [], resultType: 'complete' }), revision: MODERN },
    /ttlMs is undefined/,
  ],
  [
    'a modern request without capabilities',
    {
      direction: 'c2s',
      message: call('tools/list', { _meta: { 'io.modelcontextprotocol/protocolVersion': MODERN } }),
      revision: MODERN,
    },
    /no clientCapabilities/,
  ],
  [
    'a removed method',
    { direction: 'c2s', message: call('ping', { _meta: envelope }), revision: MODERN },
    /no c2s method/,
  ],
  [
    'a server request to a modern client',
    { message: call('roots/list', {}), revision: MODERN },
    /server request/,
  ],
  [
    'a question for something other than the three methods',
    {
      requestMethod: 'tools/list',
      message: result({ resultType: 'input_required', requestState: 's' }),
      revision: MODERN,
    },
    /input_required here/,
  ],
  [
    'a form and a visit to a page, asked by a modern result',
    {
      requestMethod: 'tools/call',
      message: result({
        resultType: 'input_required',
        inputRequests: {
          a: question({ mode: 'form', message: 'm', requestedSchema: { type: 'object', properties: {} } }),
          b: question({ mode: 'url', message: 'm', url: 'https://example.com/' }),
        },
      }),
      revision: MODERN,
    },
    undefined,
  ],
  ...(
    [
      [{ mode: 'url', message: 'm', url: 'https://example.com/', elicitationId: '1' }, /has elicitationId/],
      [{ mode: 'url', message: 'm' }, /inputRequests.a: .*url/],
      [{ message: 'm', requestedSchema: { type: 'object' } }, /inputRequests.a/],
      [{ message: 'm', requestedSchema: { type: 'object', properties: {} }, task: {} }, /has task/],
    ] as const
  ).map(([params, fault]): Row => {
    const asking = { resultType: 'input_required', inputRequests: { a: question(params) } };
    const frame = { requestMethod: 'tools/call', message: result(asking), revision: MODERN };
    return [`a question with ${Object.keys(params)}`, frame, fault];
  }),
  [
    'an answer with resultType, brought along by a modern request',
    {
      direction: 'c2s',
      message: call('tools/call', {
        name: 'a',
        _meta: envelope,
        inputResponses: { a: { action: 'accept', resultType: 'complete' } },
      }),
      revision: MODERN,
    },
    /answer has resultType/,
  ],
  [
    'a visit to a page before its revision',
    {
      message: call('elicitation/create', {
        mode: 'url',
        message: 'm',
        url: 'https://example.com/',
        elicitationId: '1',
      }),
      revision: '2025-06-18',
    },
    /mode url came with 2025-11-25/,
  ],
  [
    'a visit to a page without the id that it had then',
    {
      message: call('elicitation/create', { mode: 'url', message: 'm', url: 'https://example.com/' }),
      revision: LEGACY,
    },
    /no elicitationId/,
  ],
  [
    'an answer of the model in several blocks before its revision',
    {
      direction: 'c2s',
      requestMethod: 'sampling/createMessage',
      message: result({ model: 'm', role: 'assistant', content: text('x') }),
      revision: '2025-06-18',
    },
    /a list came with/,
  ],
  [
    'an error code that the modern revision took out',
    { message: { jsonrpc: '2.0', id: 1, error: { code: -32002, message: 'm' } }, revision: MODERN },
    /error code -32002/,
  ],
  [
    'a modern error code toward a legacy client',
    { message: { jsonrpc: '2.0', id: 1, error: { code: -32022, message: 'm' } }, revision: LEGACY },
    /error code -32022/,
  ],
  [
    'a vendor method',
    {
      direction: 'c2s',
      message: call('acme/search', { _meta: envelope, q: 1 }),
      revision: MODERN,
    },
    undefined,
  ],
  ['a member too many', { message: { ...result({}), extra: 1 }, revision: LEGACY }, /extra/],
  ['an id of the wrong type', { message: { ...result({}), id: true }, revision: LEGACY }, /JSON-RPC/],
  [
    'progress',
    { message: note('notifications/progress', { progressToken: 0, progress: 1 }), revision: LEGACY },
    undefined,
  ],
  [
    'a batch after its one revision',
    { message: [result({ content: [] })], requestMethod: 'tools/call', revision: '2025-06-18' },
    /batch/,
  ],
];

describe('the watch over frames', () => {
  test.each(ROWS)('judges %s', (_what, frame, fault) => {
    const problems = problemsOf({ direction: 's2c', revision: LEGACY, ...frame }).join('\n');
    if (fault) expect(problems).toMatch(fault);
    else expect(problems).toBe('');
  });
});
