import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, startCell } from '../../support/cells.js';
import { sleep } from '../../support/net.js';

/** Headers of a client that end at the gateway, whatever the era. */
const ENDS_HERE = {
  cookie: 'session=secret',
  origin: 'http://localhost:1234',
  'sec-fetch-mode': 'cors',
  'accept-encoding': 'br',
  'last-event-id': '7',
  'proxy-authorization': 'Basic c2VjcmV0',
  te: 'trailers',
};

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
  });
  afterAll(() => rig.close());

  const received = (method: string) => rig.backend.received(method).at(-1)?.headers ?? {};

  test('sends a backend what it needs to know, and nothing of the client that ends at the gateway', async () => {
    await rig.call('tools/call', { name: 'echo' }, { headers: ENDS_HERE });
    const headers = received('tools/call');
    expect(headers).toMatchObject({
      host: new URL(rig.backend.url).host,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'accept-encoding': 'identity',
    });
    for (const name of Object.keys(ENDS_HERE)) {
      if (name !== 'accept-encoding') expect(headers).not.toHaveProperty(name);
    }
    const mcp = Object.keys(headers).filter((name) => name.startsWith('mcp-'));
    expect(mcp.sort()).toEqual(
      rig.modernBackend
        ? ['mcp-method', 'mcp-name', 'mcp-protocol-version']
        : ['mcp-protocol-version', 'mcp-session-id'],
    );
  });

  test('carries trace context and credentials on', async () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const headers = { traceparent: trace, tracestate: 'a=1' };
    await rig.call('tools/call', { name: 'echo' }, { headers });
    expect(received('tools/call')).toMatchObject(headers);
    await rig.call('tools/call', { name: 'echo' }, {});
    expect(received('tools/call')).not.toHaveProperty('traceparent');
  });

  test('tells the client of no header of the backend', async () => {
    rig.on(
      'tools/call',
      ({ id, frame, sendJson }) =>
        void sendJson({ ...frame(rig.result('{"content":[]}')), id }, 200, {
          'set-cookie': 'lb=a',
          server: 'Backend/1.0',
          'x-powered-by': 'Backend',
          'mcp-session-id': 'of-the-backend',
          'x-inner': 'http://10.0.0.9:8000/',
          'access-control-allow-origin': '*',
        }) as undefined,
    );
    const { headers, status } = await rig.call('tools/call', { name: 'echo' });
    expect(status).toBe(200);
    for (const name of ['set-cookie', 'server', 'x-powered-by', 'x-inner', 'access-control-allow-origin'])
      expect(headers).not.toHaveProperty(name);
    expect(headers['mcp-session-id']).not.toBe('of-the-backend');
    if (rig.modernClient) expect(headers).not.toHaveProperty('mcp-session-id');
    rig.on('tools/call', undefined);
  });

  test('names the version of the backend, and no session before there is one', async () => {
    await rig.call('tools/list');
    await sleep(20);
    const first = rig.backend.received(rig.modernBackend ? 'server/discover' : 'initialize')[0]?.headers;
    if (rig.modernBackend) expect(first?.['mcp-protocol-version']).toBe('2026-07-28');
    else {
      expect(first).not.toHaveProperty('mcp-session-id');
      expect(first).not.toHaveProperty('mcp-protocol-version');
      const next = rig.backend.received('notifications/initialized')[0]?.headers;
      expect(next).toMatchObject({
        'mcp-session-id': expect.any(String),
        'mcp-protocol-version': '2025-11-25',
      });
    }
  });
});
