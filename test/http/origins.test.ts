import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { RequestGuard } from '../../src/http/origins.js';
import type { ParsedRequest } from '../../src/http/pipeline.js';

const guardOf = (host: string, allowedHosts: string[], allowedOrigins: string[] = []) =>
  new RequestGuard({ host, publicUrl: 'https://public.example', allowedHosts, allowedOrigins });
const request = (host: string, path = '/mcp'): ParsedRequest =>
  ({ path, message: { httpVersion: '1.1', headers: { host } } as IncomingMessage }) as ParsedRequest;

describe.each(['0.0.0.0', '10.0.0.1', '::'])('on %s, allowed hosts', (address) => {
  const guard = guardOf(address, ['mcp.example']);
  test.each(['mcp.example', 'mcp.example:8080', 'public.example', 'localhost:1'])('hold for %s', (host) => {
    expect(guard.admit(request(host))).toBeUndefined();
  });
  test.each(['evil.example', 'mcp.example.evil', '10.0.0.9'])('refuse %s', (host) => {
    expect(guard.admit(request(host))).toMatchObject({ status: 403 });
  });
  test.each(['/healthz', '/readyz'])('do not concern %s', (path) => {
    expect(guard.admit(request('10.1.2.3:8080', path))).toBeUndefined();
  });
  test('that are none let every host in', () => {
    expect(guardOf(address, []).admit(request('any.example'))).toBeUndefined();
  });
});

test('on loopback the health check is of the allowed hosts too', () => {
  expect(guardOf('127.0.0.1', []).admit(request('evil.example', '/healthz'))).toMatchObject({ status: 403 });
});

describe('an origin with a * for its first labels', () => {
  const guard = guardOf('0.0.0.0', [], ['https://*.example.com', 'https://*.example.org:8443']);
  test.each([
    'https://a.example.com',
    'https://a.b.example.com',
    'HTTPS://A.example.COM',
    'https://x.example.org:8443',
  ])('allows %s', (origin) => void expect(guard.allowsOrigin(origin)).toBe(true));
  test.each([
    'https://example.com',
    'https://.example.com',
    'http://a.example.com',
    'https://a.example.com:444',
    'https://a.example.com.evil',
    'https://evilexample.com',
    'https://evil.test/.example.com',
    'https://x.example.org',
  ])('refuses %s', (origin) => void expect(guard.allowsOrigin(origin)).toBe(false));
});
