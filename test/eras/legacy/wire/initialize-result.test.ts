import { expect, test } from 'vitest';
import { initializeResult } from '../../../../src/eras/legacy/wire/initialize-result.js';
import type { ServerDescription } from '../../../../src/exchange/outbound.js';

const modern = (more: Partial<ServerDescription> = {}) =>
  ({
    era: 'modern',
    capabilities: '{}',
    serverInfo: undefined,
    instructions: undefined,
    ttlMs: 0,
    result: Buffer.from('{}'),
    ...more,
  }) as ServerDescription;

test.each([
  [{}, '"capabilities":{},"serverInfo":{"name":"unknown","version":"0"}'],
  [
    { capabilities: '{"tools":{ }}', serverInfo: '{"name":"s","version":"1.0"}', instructions: '"\\u0041"' },
    '"capabilities":{"tools":{ }},"serverInfo":{"name":"s","version":"1.0"},"instructions":"\\u0041"',
  ],
  [
    { capabilities: '{"extensions":{"io.modelcontextprotocol/tasks":{},"x/y":{"a":1.0}}}', serverInfo: '{}' },
    '"capabilities":{"extensions":{"x/y":{"a":1.0}}},"serverInfo":{}',
  ],
  [
    { capabilities: '{"experimental":{"io.modelcontextprotocol/tasks":{}}}', serverInfo: '{}' },
    '"capabilities":{"experimental":{"io.modelcontextprotocol/tasks":{}}},"serverInfo":{}',
  ],
] as const)('the result of a modern server that says %j has %s', (more, members) => {
  const result = initializeResult(modern(more), '2025-06-18').toString();
  expect(result).toBe(`{"protocolVersion":"2025-06-18",${members}}`);
});

test('the result of a legacy server is passed on, with the revision that the client requested', () => {
  const result =
    '{ "capabilities":{"tools":{"listChanged":true},"tasks":{}} , "protocolVersion":"2024-11-05","x":1.0,"serverInfo":{}}';
  const capabilities = '{"tools":{"listChanged":true},"tasks":{}}';
  const description = modern({ era: 'legacy', result: Buffer.from(result), capabilities });
  expect(initializeResult(description, '2025-11-25').toString()).toBe(
    result.replace('2024-11-05', '2025-11-25'),
  );
});

test.each([
  ['{"protocolVersion":"2025-11-25","capabilities":{}}', ''],
  ['{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":"s","instructions":7}', ''],
  [
    '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":null,"instructions":null,"x":1.0}',
    ',"x":1.0',
  ],
])('members for which clients reject a handshake are replaced: %s', (result, rest) => {
  const corrected = JSON.parse(
    initializeResult(modern({ era: 'legacy', result: Buffer.from(result) }), '2025-11-25').toString(),
  );
  expect(corrected).toEqual({
    protocolVersion: '2025-11-25',
    capabilities: {},
    serverInfo: { name: 'unknown', version: '0' },
    ...JSON.parse(`{${rest.slice(1)}}`),
  });
});
