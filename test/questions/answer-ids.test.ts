import { expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { keeper } from '../support/keeper.js';
import { startLegacyBackend } from '../support/misbehave.js';
import { legacy, RawJson } from '../support/raw.js';

const keep = keeper();

/** As the server writes its id, and as a client does that has read it and writes it anew. */
const SPELLINGS = [
  ['"req\\/1"', '"req/1"'],
  ['"\\u00e9"', '"é"'],
  ['12345678901234567890', '12345678901234567000'],
  ['7', '"7"'],
] as const;

test.each(SPELLINGS)('the answer to the question %s may come under %s', async (asked, answered) => {
  let end = (): void => {};
  const backend = await startLegacyBackend({
    on: {
      'tools/call': (step) => {
        const stream = step.stream();
        const params = { message: 'Name?', requestedSchema: { type: 'object', properties: {} } };
        stream.event({ jsonrpc: '2.0', id: new RawJson(asked), method: 'elicitation/create', params });
        end = () => {
          stream.event(step.frame({ result: { content: [] } }));
          stream.end();
        };
        return undefined;
      },
    },
    intercept: ({ json, text, res }) => {
      if (json?.method !== undefined || json?.result === undefined) return false;
      expect(text).toContain(`"id":${asked}`);
      res.writeHead(202).end();
      end();
      return true;
    },
  });
  await keep(backend);
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const client = await legacy(gateway.url(), { capabilities: { elicitation: {} } });
  const stream = await client.open('tools/call', { name: 'echo' });
  expect((await stream.next()).data).toContain(`"id":${asked}`);
  await client.post({ jsonrpc: '2.0', id: new RawJson(answered), result: { action: 'decline' } });
  expect((await stream.done).json.result).toEqual({ content: [] });
});
