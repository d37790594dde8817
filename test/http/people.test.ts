import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { send } from '../support/raw.js';

let gateway: TestGateway;
beforeAll(async () => {
  const backend = { url: 'http://127.0.0.1:9/mcp' };
  gateway = await startGateway({
    '/plain': { backend: { ...backend, era: 'legacy' } },
    '/modern': { backend: { ...backend, era: 'modern' } },
    '/old': { backend: { ...backend, era: 'legacy' }, legacySse: true },
  });
});
afterAll(() => gateway.close());

test.each(['/plain', '/modern', '/old'])('a browser on %s gets a page', async (path) => {
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const { headers, text } = await send(gateway.url(path), { headers: { accept } });
  expect(headers['content-type']).toMatch(/^text\/html/);
  expect(text).toContain('Model Context Protocol');
});

test.each(['application/json, text/event-stream', 'text/event-stream', '*/*'])(
  'a client that accepts %s gets no page',
  async (accept) => {
    const { status, headers } = await send(gateway.url('/plain'), { headers: { accept } });
    expect(status).toBe(405);
    expect(headers['content-type']).toBe('application/json');
  },
);

test.each(['/plain/sse', '/plain/sse/', '/modern/sse?x=1', '/plain/messages'])(
  '%s says that it is not served',
  async (path) => {
    const { status, json } = await send(gateway.url(path), { headers: { accept: 'text/event-stream' } });
    expect(status).toBe(404);
    expect(json.error.message).toMatch(/does not serve HTTP\+SSE \(legacySse is not set\)/);
  },
);
