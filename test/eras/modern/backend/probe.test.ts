import { describe, expect, test } from 'vitest';
import type { ProbeFinding } from '../../../../src/eras/era.js';
import { readProbe } from '../../../../src/eras/modern/backend/probe.js';
import { type ErrorFrame, parseLenientFrame, type ResultFrame } from '../../../../src/jsonrpc/index.js';
import { TransportError, type TransportFailure } from '../../../../src/upstream/errors.js';
import type { RpcReply } from '../../../../src/upstream/rpc-call.js';

const MODERN = '2026-07-28';

function answer(status: number, body: object): RpcReply {
  const frame = parseLenientFrame(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'p', ...body })));
  return { kind: 'response', status, headers: {}, frame: frame as ResultFrame | ErrorFrame };
}
const text = (status: number, body = ''): RpcReply => ({
  kind: 'no-response',
  status,
  headers: {},
  text: body,
  lastEventId: undefined,
  retryMs: undefined,
});
const error = (status: number, code: number, message = 'no', data?: unknown) =>
  answer(status, { error: { code, message, data } });
const refused = (supported: unknown, status = 400) => error(status, -32022, 'Unsupported', { supported });
const versions = (supportedVersions: unknown) => answer(200, { result: { supportedVersions } });
const failed = (failure: TransportFailure): RpcReply => ({
  kind: 'failed',
  error: new TransportError(failure, `it ${failure}`),
});

const TABLE: readonly (readonly [string, RpcReply, ProbeFinding['kind']])[] = [
  ['a result with the version', versions([MODERN]), 'spoken'],
  ['a result with the version among others', versions(['2025-11-25', MODERN, '2027-01-01']), 'spoken'],
  ['a result with older versions', versions(['2025-11-25', '2024-11-05']), 'not-spoken'],
  ['a result with newer versions', versions(['2026-11-30']), 'no-common-version'],
  ['a result with older and newer versions', versions(['2027-01-01', '2025-11-25']), 'not-spoken'],
  ['a result with no version', versions([]), 'not-spoken'],
  ['a result with nonsense', versions([7, null, 'next']), 'not-spoken'],
  ['a result with a newer version and nonsense', versions(['2027-01-01', 'next']), 'not-spoken'],
  ['a result with versions as text', versions(MODERN), 'not-spoken'],
  ['a result without versions', answer(200, { result: {} }), 'not-spoken'],
  ['-32022 with the version', refused([MODERN]), 'spoken'],
  ['-32022 with older versions', refused(['2025-11-25']), 'not-spoken'],
  ['-32022 with newer versions', refused(['2026-11-30']), 'no-common-version'],
  ['-32022 with no list', error(400, -32022), 'not-spoken'],
  ['-32022 with a list of another type', refused('2025-11-25'), 'not-spoken'],
  ['-32022 at 200', refused(['2025-11-25'], 200), 'not-spoken'],
  ['-32601 at 200', error(200, -32601), 'not-spoken'],
  ['-32601 at 404', error(404, -32601), 'not-spoken'],
  ['-32602', error(200, -32602), 'not-spoken'],
  ['-32020', error(400, -32020), 'not-spoken'],
  ['-32021', error(400, -32021), 'not-spoken'],
  ['-32000', error(400, -32000), 'not-spoken'],
  ['-32603 at 500', error(500, -32603), 'inconclusive'],
  ['-32603 at 200', error(200, -32603), 'not-spoken'],
  ...[200, 202, 204, 400, 404, 405, 406, 409, 410, 413, 415, 422].map(
    (status) => [`${status} without an answer`, text(status), 'not-spoken'] as const,
  ),
  ...[401, 402, 403, 407, 408, 421, 423, 425, 429, 500, 501, 502, 503, 504, 599].map(
    (status) => [`${status} without an answer`, text(status), 'inconclusive'] as const,
  ),
  ['an unreachable server', failed('unreachable'), 'unreachable'],
  ['a broken connection', failed('broken'), 'inconclusive'],
  ['an answer that cannot be read', failed('unusable'), 'inconclusive'],
  ['an answer that is too large', failed('too-large'), 'inconclusive'],
  ['silence', failed('aborted'), 'inconclusive'],
];

describe.each(TABLE)('%s', (_name, reply, kind) => {
  test(`is ${kind}, with a reason`, () => {
    const finding = readProbe(reply);
    expect(finding.kind).toBe(kind);
    expect(finding.reason).toMatch(/\S/);
    expect(finding.reason.length).toBeLessThan(400);
  });
});

test('only a probe without a response is slow', () => {
  for (const [, reply] of TABLE) {
    const finding = readProbe(reply);
    if (finding.kind !== 'inconclusive') continue;
    expect(finding.slow).toBe(reply.kind === 'failed' && reply.error.failure === 'aborted');
  }
});

test('the reason names the response', () => {
  expect(readProbe(error(400, -32000, 'Bad Request: Server not initialized')).reason).toBe(
    'answered server/discover with HTTP 400, -32000 Bad Request: Server not initialized',
  );
  expect(readProbe(versions([MODERN])).reason).toContain(MODERN);
  expect(readProbe(refused(['2026-11-30'])).reason).toContain('2026-11-30');
  expect(readProbe(error(400, -32000, 'x'.repeat(10_000))).reason.length).toBeLessThan(250);
});
