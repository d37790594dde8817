import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Cell, type Rig, raw, startCell } from '../../support/cells.js';
import { detailOf } from '../../support/error-detail.js';
import { legacy } from '../../support/raw.js';

const READ = ['resources/read', { uri: 'file:///missing' }] as const;
const CALL = ['tools/call', { name: 'echo' }] as const;
const UNKNOWN = ['acme/none', {}] as const;
const URI = { uri: 'file:///missing' };

interface Row {
  what: string;
  cells: readonly Cell[];
  request: readonly [string, object];
  /** The backend's error object as it writes it, and its HTTP status. */
  error: string;
  status?: number;
  /** What the client gets, where that differs from what the backend said with HTTP 200. */
  code?: number;
  data?: unknown;
  clientStatus?: number;
}

const ROWS: Row[] = [
  ...[-31999, -32000, -32001, -32019, -32603, -32500, -32800, -1, 1, 0, 12345, -32100].map(
    (code): Row => ({
      what: `${code} means what the backend means by it`,
      cells: CELLS,
      request: CALL,
      error: `{"code":${code},"message":"m","data":{"k":1.0}}`,
    }),
  ),
  {
    what: 'unknown method',
    cells: ['LL', 'LM', 'MM'],
    request: UNKNOWN,
    error: '{"code":-32601,"message":"Method not found","data":"acme/none"}',
  },
  {
    what: 'unknown method',
    cells: ['ML'],
    request: UNKNOWN,
    error: '{"code":-32601,"message":"Method not found","data":"acme/none"}',
    clientStatus: 404,
  },
  {
    what: 'invalid params',
    cells: CELLS,
    request: CALL,
    error: '{"code":-32602,"message":"Unknown tool: echo"}',
  },
  {
    what: "an unknown method in the words of Python's server",
    cells: ['ML'],
    request: UNKNOWN,
    error: '{"code":-32602,"message":"Invalid request parameters","data":""}',
    code: -32601,
    clientStatus: 404,
  },
  {
    // The client's own era, and what the backend would have told it directly.
    what: "an unknown method in the words of Python's server",
    cells: ['LL'],
    request: UNKNOWN,
    error: '{"code":-32602,"message":"Invalid request parameters","data":""}',
  },
  {
    what: 'invalid params of a known method in the same words',
    cells: CELLS,
    request: CALL,
    error: '{"code":-32602,"message":"Invalid request parameters","data":""}',
  },
  ...[-32700, -32600].flatMap((code): Row[] => [
    {
      what: `${code} about a message that the client wrote`,
      cells: ['LL', 'MM'],
      request: CALL,
      error: `{"code":${code},"message":"Invalid Request"}`,
    },
    {
      what: `${code} about a message that the gateway wrote`,
      cells: ['LM'],
      request: CALL,
      error: `{"code":${code},"message":"Invalid Request"}`,
      code: -32603,
    },
    {
      what: `${code} about a message that the gateway wrote`,
      cells: ['ML'],
      request: CALL,
      error: `{"code":${code},"message":"Invalid Request"}`,
      code: -32603,
      clientStatus: 500,
    },
  ]),
  ...[-32020, -32021, -32022, -32050, -32099].map(
    (code): Row => ({
      what: `${code}, which a legacy server means otherwise`,
      cells: ['ML'],
      request: CALL,
      error: `{"code":${code},"message":"m","data":{"k":1.0}}`,
      code: -32603,
    }),
  ),
  {
    what: 'a capability that the client lacks',
    cells: ['LM'],
    request: CALL,
    error: '{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}',
    status: 400,
  },
  {
    what: 'a capability that the client lacks',
    cells: ['MM'],
    request: CALL,
    error: '{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}',
    status: 400,
    clientStatus: 400,
  },
  ...[-32020, -32021].map(
    (code): Row => ({
      what: `${code} goes out with the status that the specification has for it`,
      cells: ['MM'],
      request: CALL,
      error: `{"code":${code},"message":"m","data":{"requiredCapabilities":{}}}`,
      clientStatus: 400,
    }),
  ),
  {
    what: 'invalid params with the status of Python and Go',
    cells: ['MM'],
    request: READ,
    error: '{"code":-32602,"message":"Unknown resource","data":{"uri":"file:///missing"}}',
    status: 400,
    clientStatus: 400,
  },
  {
    what: 'an unknown method with its status',
    cells: ['MM'],
    request: UNKNOWN,
    error: '{"code":-32601,"message":"Method not found"}',
    status: 404,
    clientStatus: 404,
  },
  {
    what: 'an error with a status of its own',
    cells: ['LL', 'LM'],
    request: CALL,
    error: '{"code":-32603,"message":"boom","data":[1.0]}',
    status: 500,
  },
  {
    what: 'an error with a status of its own',
    cells: ['ML'],
    request: CALL,
    error: '{"code":-32603,"message":"boom","data":[1.0]}',
    status: 400,
  },
  // A resource that is not there
  ...[-32002, -32001, 0].map(
    (code): Row => ({
      what: `a resource that is not there, ${code}`,
      cells: ['ML'],
      request: READ,
      error: `{"code":${code},"message":"Unknown resource: file:///missing"}`,
      code: -32602,
      data: URI,
    }),
  ),
  {
    what: 'a resource that is not there, with data',
    cells: ['ML', 'MM'],
    request: READ,
    error: '{"code":-32002,"message":"Resource not found","data":{"uri":"file:///missing","x":1.0}}',
    code: -32602,
  },
  {
    what: 'a resource that is not there, in the old words',
    cells: ['MM'],
    request: READ,
    error: '{"code":-32002,"message":"Resource not found"}',
    code: -32602,
    data: URI,
  },
  {
    what: 'a resource that is not there, without data',
    cells: ['ML'],
    request: READ,
    error: '{"code":-32602,"message":"Resource file:///missing not found"}',
    data: URI,
  },
  {
    what: 'a resource that is not there',
    cells: ['LM'],
    request: READ,
    error: '{"code":-32602,"message":"Resource not found","data":{"uri":"file:///missing"}}',
    code: -32002,
  },
  {
    // Nothing says that it is the resource that is missing.
    what: 'invalid params of a read',
    cells: ['LM', 'MM'],
    request: READ,
    error: '{"code":-32602,"message":"Invalid params","data":{"uri":"file:///other"}}',
  },
  {
    what: 'a resource that is not there',
    cells: ['LL', 'LM'],
    request: READ,
    error: '{"code":-32002,"message":"Resource not found","data":{"uri":"file:///missing"}}',
  },
  {
    what: '-32002 of another method',
    cells: CELLS,
    request: CALL,
    error: '{"code":-32002,"message":"Resource not found"}',
  },
  {
    what: '-32001 of a read that says something else',
    cells: ['ML', 'LL'],
    request: READ,
    error: '{"code":-32001,"message":"Request timed out"}',
  },
];

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell, {
      script: { capabilities: { tools: {}, resources: {} } },
      route: { backend: { era: cell[1] === 'M' ? 'modern' : 'legacy' } },
    });
  });
  afterAll(() => rig.close());

  const refuse = (method: string, error: string, status: number, sse: boolean) =>
    rig.on(method, ({ json, sendJson, stream }) => {
      const body = `{"jsonrpc":"2.0","id":${JSON.stringify(json.id)},"error":${error}}`;
      if (!sse) return void sendJson(body, status) as undefined;
      const events = stream();
      events.event(body);
      return void events.end() as undefined;
    });

  describe.each(ROWS.filter(({ cells }) => cells.includes(cell)))('$what: $error', (row) => {
    test.each([false, true])(
      'reaches the client with the right code and status (as event: %s)',
      async (sse) => {
        const [method, params] = row.request;
        refuse(method, row.error, row.status ?? 200, sse && row.status === undefined);
        const { json, status, answer } = await rig.call(method, params, { id: 9 });
        const given = JSON.parse(row.error);
        const data = 'data' in row ? row.data : given.data;
        const expected = { ...given, code: row.code ?? given.code, data };
        expect(json).toEqual({ jsonrpc: '2.0', id: 9, error: JSON.parse(JSON.stringify(expected)) });
        expect(status).toBe(row.clientStatus ?? 200);
        // What stays is passed on byte for byte.
        if (!('code' in row) && !('data' in row)) expect(answer).toContain(`"error":${row.error}`);
      },
    );
  });

  test('keeps the rest of an error whose code it has to change', async () => {
    const error = (code: number) => `{"message":"\\u0041","code":${code},"data":{"k":1.0},"x-vendor":[ ]}`;
    const code = rig.modernBackend ? -32600 : -32050;
    if (cell === 'LL' || cell === 'MM') return;
    refuse('tools/call', error(code), 200, false);
    const { answer } = await rig.call(...CALL);
    expect(answer).toContain(`"error":${error(-32603)}`);
  });

  test.each([
    ['"boom"', 0, 'boom'],
    ['{"message":"m"}', 0, 'm'],
    ['{"code":-31000}', -31000, ''],
    ['{"code":"-31000","message":"m"}', 0, 'm'],
    ['{"code":-31000,"message":7}', -31000, ''],
    ['{}', 0, ''],
  ])('makes an error of JSON-RPC out of %s', async (error, code, message) => {
    refuse('tools/call', error, 200, false);
    const { json } = await rig.call(...CALL, { id: 9 });
    expect(json).toEqual({ jsonrpc: '2.0', id: 9, error: { code, message } });
  });

  test('leaves an error of a tool a result, with everything in it', async () => {
    const parts =
      '"content":[{"type":"text","text":"It broke."}],"isError":true,"structuredContent":{"k":1.0}';
    rig.answer('tools/call', `{${parts}}`);
    const { answer, json, status } = await rig.call(...CALL);
    expect(status).toBe(200);
    expect(json.error).toBeUndefined();
    expect(answer).toContain(parts);
  });

  test.each([
    [401, { 'www-authenticate': 'Bearer realm="x"' }],
    [403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }],
    [429, { 'retry-after': '7' }],
  ])(
    'passes on what HTTP %i says to the client, with the words of a JSON-RPC error',
    async (status, headers: object) => {
      rig.on('tools/call', ({ json, sendJson }) => {
        const error = { code: -31999, message: 'Not you', data: { k: 1 } };
        return void sendJson({ jsonrpc: '2.0', id: json.id, error }, status, { ...headers }) as undefined;
      });
      const refused = await rig.call(...CALL, { id: 9 });
      expect(refused.status).toBe(status);
      expect(refused.headers).toMatchObject(headers);
      expect(refused.json).toEqual({
        jsonrpc: '2.0',
        id: 9,
        error: { code: -31999, message: 'Not you', data: { k: 1 } },
      });
      rig.on('tools/call', ({ sendText }) => void sendText('Not you', status, { ...headers }) as undefined);
      const plain = await rig.call(...CALL, { id: 9 });
      expect(plain.status).toBe(status);
      expect(plain.headers).toMatchObject(headers);
      expect(plain.json).toMatchObject({ id: 9, error: { code: -32000 } });
      expect(plain.json.error.data.eragate).toMatch(/^ERAGATE_(UNAUTHORIZED|FORBIDDEN|RATE_LIMITED)$/);
      expect(plain.answer).not.toContain('Not you');
      expect(detailOf(rig.gateway, plain)).toContain('Not you');
    },
  );

  test.each([500, 502, 503])(
    'answers with an error when the backend answers HTTP %i with a page',
    async (status) => {
      rig.on(
        'tools/call',
        ({ sendText }) =>
          void sendText('<html>no</html>', status, { 'content-type': 'text/html' }) as undefined,
      );
      const { json, status: got } = await rig.call(...CALL, { id: 9 });
      expect(got).toBe(502);
      expect(json).toMatchObject({
        id: 9,
        error: { code: -32603, message: expect.stringContaining(`${status}`) },
      });
    },
  );
});

describe.each(CELLS)('%s: a backend that is away for a while', (cell) => {
  test.each(['30', 'Wed, 21 Oct 2026 07:28:00 GMT'])(
    'has its client told for how long: %s',
    async (retryAfter) => {
      const rig = await startCell(cell);
      try {
        rig.on(
          'tools/call',
          ({ sendText }) => void sendText('busy', 503, { 'retry-after': retryAfter }) as undefined,
        );
        const answer = await rig.call(...CALL, { id: 9 });
        expect(answer.status).toBe(503);
        expect(answer.headers['retry-after']).toBe(retryAfter);
        expect(answer.json).toMatchObject({ id: 9, error: { code: -32603 } });
        expect(answer.json.error.data).toEqual({ eragate: 'ERAGATE_BACKEND_UNAVAILABLE' });
        expect(detailOf(rig.gateway, answer)).toContain('HTTP 503: busy');
      } finally {
        await rig.close();
      }
    },
  );
});

describe('a modern backend that refuses the headers of a call', () => {
  test('is asked once more, with the headers of the list as it is now', async () => {
    const rig = await startCell('LM');
    try {
      let header = 'Old';
      rig.on('tools/list', () => {
        const schema = `{"type":"object","properties":{"v":{"type":"string","x-mcp-header":"${header}"}}}`;
        return rig.result(
          `{"tools":[{"name":"t","inputSchema":${schema}}],"ttlMs":0,"cacheScope":"private"}`,
        );
      });
      rig.on('tools/call', ({ headers, id, sendJson }) => {
        if (headers[`mcp-param-${header.toLowerCase()}`] === 'x') return rig.result('{"content":[]}');
        return void sendJson(
          { jsonrpc: '2.0', id, error: { code: -32020, message: 'Header mismatch' } },
          400,
        ) as undefined;
      });
      const call = () => rig.call('tools/call', { name: 't', arguments: { v: 'x' } });
      expect((await call()).json.result).toBeDefined();
      header = 'New';
      expect((await call()).json.result).toBeDefined();
      expect(rig.backend.received('tools/call')).toHaveLength(3);
      // A backend that is never content is not asked for ever.
      rig.on(
        'tools/call',
        ({ id, sendJson }) =>
          void sendJson({ jsonrpc: '2.0', id, error: { code: -32020, message: 'Never' } }, 400) as undefined,
      );
      const { json, status } = await call();
      expect(status).toBe(200);
      expect(json.error).toMatchObject({ code: -32603, message: expect.stringContaining('Never') });
      expect(rig.backend.received('tools/call')).toHaveLength(5);
    } finally {
      await rig.close();
    }
  });
});

test('errors of one session do not touch another', async () => {
  const rig = await startCell('LL');
  try {
    const [one, two] = await Promise.all([legacy(rig.gateway.url()), legacy(rig.gateway.url())]);
    rig.on('tools/call', ({ params }) =>
      params.name === 'bad' ? { error: raw('{"code":-31999,"message":"m"}') } : rig.result('{"content":[]}'),
    );
    const answers = await Promise.all([
      one.request('tools/call', { name: 'bad' }, { id: 1 }),
      two.request('tools/call', { name: 'good' }, { id: 1 }),
    ]);
    expect(answers.map(({ json }) => json.error?.code)).toEqual([-31999, undefined]);
  } finally {
    await rig.close();
  }
});
