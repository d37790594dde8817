import { describe, expect, test } from 'vitest';
import { LostSessionRules } from '../../../../src/eras/legacy/backend/lost-sessions.js';
import { type ErrorFrame, parseLenientFrame, type ResultFrame } from '../../../../src/jsonrpc/index.js';
import { TransportError } from '../../../../src/upstream/errors.js';
import type { RpcReply } from '../../../../src/upstream/rpc-call.js';

const ID = '5f0c-session-id';

function answer(status: number, code: number, message: string, data?: unknown): RpcReply {
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message, data } }));
  return { kind: 'response', status, headers: {}, frame: parseLenientFrame(bytes) as ErrorFrame };
}
const text = (status: number, body = ''): RpcReply => ({
  kind: 'no-response',
  status,
  headers: {},
  text: body,
  lastEventId: undefined,
  retryMs: undefined,
});

/** Replies; whether the session is lost, and whether a server that had no sessions requires one. */
const TABLE: readonly (readonly [string, RpcReply, lost: boolean, wanted: boolean])[] = [
  ['404 text', text(404, 'Not Found'), true, false],
  ['404 text of a session', text(404, 'Session not found'), true, true],
  ['404 -32001', answer(404, -32001, 'Session not found'), true, true],
  ['404 -32600', answer(404, -32600, 'Not Found'), true, false],
  ['404 0', answer(404, 0, ''), true, false],
  ['404 -32601', answer(404, -32601, 'Method not found'), false, false],
  ['404 -32602 that is about the session', answer(404, -32602, 'Unknown session'), true, false],
  ['404 -32002', answer(404, -32002, 'Resource not found'), false, false],
  ['400 -32000', answer(400, -32000, 'Bad Request: No valid session ID provided'), true, true],
  ['400 -32000 not initialized', answer(400, -32000, 'Bad Request: Server not initialized'), true, true],
  ['400 -32000 of a header', answer(400, -32000, 'Mcp-Session-Id header is required'), true, true],
  ['400 -32602', answer(400, -32602, 'Invalid params: session is required'), false, false],
  ['400 -32000 of a version', answer(400, -32000, 'Unsupported protocol version'), false, false],
  ['400 text', text(400, 'Bad Request'), false, false],
  ['400 text of a session', text(400, 'missing session'), true, true],
  ['401 of a session', text(401, 'Session expired'), false, false],
  ['403 of a session', answer(403, -32000, 'session user mismatch'), false, false],
  ['409 without words', text(409), true, false],
  ['409 -32000', answer(409, -32000, 'Conflict'), true, false],
  ['410', text(410), true, false],
  ['422', text(422, 'Unprocessable'), true, false],
  ['422 of a session', text(422, 'Session not found'), true, true],
  ['429 of sessions', text(429, 'too many sessions'), false, false],
  ['500 without words', text(500), false, false],
  ['500 text of a session', text(500, 'Error: session abc does not exist'), true, false],
  [
    '500 with the cause in the data',
    answer(500, -32603, 'Internal error', 'No valid session ID'),
    true,
    false,
  ],
  ['500 of something else', answer(500, -32603, 'Internal error', { message: 'disk full' }), false, false],
  ['502 of a session', text(502, 'session not found'), false, false],
  ['503 without words', text(503), false, false],
  ['503 of a session', text(503, 'Session expired, please re-initialize'), true, false],
  ['503 of an order', text(503, 'order expired in this session'), false, false],
  ['200 -32001', answer(200, -32001, 'Session not found'), true, false],
  ['200 -32000 expired', answer(200, -32000, 'Session has expired.'), true, false],
  ['200 -32600 with a prefix', answer(200, -32600, 'Bad Request: invalid session id'), true, false],
  ['200 -32000 with the id', answer(200, -32000, `MCP: no transport, session ${ID} was closed`), true, false],
  ['200 of a session of its own', answer(200, -32000, 'Browser session 17 not found'), false, false],
  ['200 of another id', answer(200, -32000, 'session 0000 not found'), false, false],
  ['200 -32602', answer(200, -32602, 'Invalid session'), false, false],
  ['200 without an answer', text(200, 'Session not found'), false, false],
  ['202', text(202), false, false],
];

describe.each(TABLE)('%s', (_name, reply, lost, wanted) => {
  test(`${lost ? 'means' : 'does not mean'} a lost session`, () => {
    expect(new LostSessionRules().isLost(reply, ID)).toBe(lost);
  });

  test(`to a request without a session, ${wanted ? 'means' : 'does not mean'} that one is required`, () => {
    expect(new LostSessionRules().isLost(reply, undefined)).toBe(wanted);
  });
});

test('a result never means a lost session', () => {
  const bytes = Buffer.from(
    '{"jsonrpc":"2.0","id":1,"result":{"isError":true,"message":"Session not found"}}',
  );
  for (const status of [200, 404]) {
    const reply: RpcReply = {
      kind: 'response',
      status,
      headers: {},
      frame: parseLenientFrame(bytes) as ResultFrame,
    };
    expect(new LostSessionRules([{ status }]).isLost(reply, ID)).toBe(false);
  }
});

test('a broken connection does not mean a lost session', () => {
  const reply: RpcReply = { kind: 'failed', error: new TransportError('broken', 'session not found') };
  expect(new LostSessionRules().isLost(reply, ID)).toBe(false);
});

describe('configured responses', () => {
  const table = new LostSessionRules([
    { status: 401, message: 'Session Over' },
    { status: 418 },
    { status: 200, message: 'log in (again)' },
  ]);
  test.each<[string, RpcReply, boolean]>([
    ['status and text', text(401, 'your session over here'), true],
    ['status and text in the error', answer(401, -32000, 'SESSION OVER'), true],
    ['status and text in the data', answer(401, -32000, 'no', { why: 'session over' }), true],
    ['the status with another text', text(401, 'no token'), false],
    ['the text at another status', text(402, 'session over'), false],
    ['any text at a status without one', text(418, ''), true],
    ['any error at a status without a text', answer(418, -32601, 'Method not found'), true],
    ['an error at 200 with the text, taken literally', answer(200, -32602, 'please log in (again)'), true],
    ['an error at 200 with another text', answer(200, -32602, 'please log in again'), false],
    ['what is known anyway', text(404), true],
  ])('%s', (_name, reply, lost) => {
    expect(table.isLost(reply, ID)).toBe(lost);
  });
});

test('long messages are matched in a short time', () => {
  const nasty = [
    'session '.repeat(20_000),
    'the mcp session id '.repeat(10_000),
    `${'a '.repeat(50_000)}: session`,
  ];
  const before = performance.now();
  for (const message of nasty) {
    for (const status of [200, 400, 404, 500, 503]) {
      new LostSessionRules().isLost(answer(status, -32000, message), ID);
      new LostSessionRules().isLost(text(status, message), ID);
    }
  }
  expect(performance.now() - before).toBeLessThan(1_000);
});
