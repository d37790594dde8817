import { expect, test } from 'vitest';
import type { HttpCall } from '../../../../src/downstream/http-call.js';
import { ModernInbound } from '../../../../src/eras/modern/client/inbound.js';
import { InteractiveCall } from '../../../../src/eras/modern/client/interactive-call.js';
import { CODE, ExchangeError } from '../../../../src/exchange/errors.js';
import { ownError } from '../../../../src/exchange/outcome.js';
import { Sealer } from '../../../../src/exchange/utils/sealer.js';
import { Ticker } from '../../../../src/exchange/utils/ticker.js';
import { parseFrame, type RequestFrame, type Rope } from '../../../../src/jsonrpc/index.js';

const FAULT = new TypeError('a fault of the gateway');

/** What a route makes of errors, as {@link Route.failureOf} does; keeps those that it would report. */
function failures() {
  const reported: unknown[] = [];
  const failureOf = (error: unknown) => {
    if (error instanceof ExchangeError) return error.outcome;
    reported.push(error);
    return ownError({ code: CODE.internal, message: 'Internal error of the gateway', status: 500 });
  };
  return { reported, failureOf };
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** Posts one request to a route whose backend cannot be found for a reason that nobody foresaw. */
async function post(method: string, params: Record<string, unknown>, headers: Record<string, string>) {
  const { reported, failureOf } = failures();
  const limits = { max: 9, maxPerPrincipal: 9, maxAnonymous: 9 };
  const shared = { route: '/mcp', sealer: new Sealer([]), ticker: new Ticker() };
  const inbound = new ModernInbound(
    {
      ...shared,
      timeoutMs: 1_000,
      maxParked: 9,
      maxParkedPerPrincipal: 9,
      maxRounds: 10,
      maxParkedAnonymous: 9,
    },
    { ...shared, ttlMs: 1_000, ...limits },
  );
  const answers: { status: number; body: unknown }[] = [];
  const response = {
    allowStream: () => {},
    acceptsEvents: true,
    status: 500,
    onAbort: () => {},
    end: (status: number, body: Rope) =>
      void answers.push({ status, body: JSON.parse(body.toBuffer().toString()) }),
  };
  const call = {
    response,
    headers: { params: [], protocolVersion: '2026-07-28', method, ...headers },
    forwarded: {},
    principal: 'anonymous',
  };
  const route = {
    path: '/mcp',
    failureOf,
    record: () => {},
    eraFor: () => Promise.reject(FAULT),
    describe: () => Promise.reject(FAULT),
  };
  const message = { jsonrpc: '2.0', id: 7, method, params: { ...params, _meta: META } };
  const frame = parseFrame(Buffer.from(JSON.stringify(message))) as RequestFrame;
  await inbound.post(route as never, call as unknown as HttpCall, frame);
  return { reported, answers };
}

test.each([
  ['server/discover', {}, {}],
  ['subscriptions/listen', { notifications: { toolsListChanged: true } }, {}],
  ['tools/call', { name: 'a', requestState: 'of somebody else' }, { name: 'a' }],
])('an error that nobody foresaw is reported, and answers %s', async (method, params, headers) => {
  const { reported, answers } = await post(method, params, headers);
  expect(reported).toEqual([FAULT]);
  expect(answers).toEqual([
    {
      status: 500,
      body: {
        jsonrpc: '2.0',
        id: 7,
        error: { code: -32603, message: 'Internal error of the gateway' },
      },
    },
  ]);
});

test('an error that nobody foresaw while a call is parked is reported, and ends the call', async () => {
  const { reported, failureOf } = failures();
  const bytes = Buffer.from('{"name":"a"}');
  const call = new InteractiveCall(
    {
      store: {
        admit: () => {
          throw FAULT;
        },
      } as never,
      write: () => {},
      failureOf,
      request: {
        id: '1',
        method: 'tools/call',
        params: { bytes, node: undefined, meta: undefined, envelopeKeys: [] },
        name: 'a',
        progressToken: undefined,
        resumes: false,
        raw: undefined,
        paramHeaders: [],
      } as never,
      caller: {
        forwarded: {},
        principal: 'anonymous',
        capabilities: { value: { elicitation: { form: {} } } },
      } as never,
      taskKeeper: undefined,
    },
    { id: '1', response: { onAbort: () => {} }, progressToken: undefined, logLevel: undefined } as never,
  );
  const params = Buffer.from('{"message":"?","requestedSchema":{"type":"object","properties":{}}}');
  const message = { id: '2', method: 'elicitation/create', bytes: params, params: undefined };
  const asked = call.ask(message as never);
  await expect(asked).resolves.toEqual({ result: Buffer.from('{"action":"cancel"}') });
  expect(reported).toEqual([FAULT]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(call.exchange.cancelled).toBe('Internal error of the gateway');
});
