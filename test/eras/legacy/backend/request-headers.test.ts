import { expect, test } from 'vitest';
import { SessionHeaders } from '../../../../src/eras/legacy/backend/request-headers.js';
import { NO_FORWARDED } from '../../../../src/exchange/forwarded-headers.js';

/** The headers as an object. */
const objectOf = (headers: readonly string[]): Record<string, string> =>
  Object.fromEntries(headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1] as string]] : [])));

test('each request of a session names its id and revision', () => {
  const headers = new SessionHeaders('2025-06-18', 's1');
  const expected = { 'mcp-session-id': 's1', 'mcp-protocol-version': '2025-06-18' };
  expect(objectOf(headers.post(NO_FORWARDED))).toMatchObject({
    ...expected,
    accept: 'application/json, text/event-stream',
  });
  expect(objectOf(headers.get(NO_FORWARDED))).toMatchObject({ ...expected, accept: 'text/event-stream' });
});

test('a session without an id names its revision only', () => {
  const headers = objectOf(new SessionHeaders('2025-06-18', undefined).post(NO_FORWARDED));
  expect(headers).toMatchObject({ 'mcp-protocol-version': '2025-06-18' });
  expect(headers).not.toHaveProperty('mcp-session-id');
});

test('forwarded headers and cookies of the backend are added, and kept out of the headers of others', () => {
  const headers = new SessionHeaders('2025-06-18', 's1', 'a=1');
  headers.keepCookies({ 'set-cookie': 'b=2; Path=/' });
  expect(objectOf(headers.post({ authorization: 'Bearer x' }))).toMatchObject({
    authorization: 'Bearer x',
    cookie: 'a=1; b=2',
  });
  expect(objectOf(headers.post(NO_FORWARDED))).not.toHaveProperty('authorization');
  expect(headers.cookies).toBe('a=1; b=2');
  const other = new SessionHeaders('2025-06-18', 's1');
  expect(objectOf(other.post(NO_FORWARDED))).not.toHaveProperty('cookie');
});

test('requests without either share one list', () => {
  const headers = new SessionHeaders('2025-06-18', 's1');
  expect(headers.post(NO_FORWARDED)).toBe(headers.post(NO_FORWARDED));
});
