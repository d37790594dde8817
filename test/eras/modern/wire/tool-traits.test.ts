import { expect, test } from 'vitest';
import { toolTraits } from '../../../../src/eras/modern/wire/tool-traits.js';
import { scanned } from '../../../support/json-node.js';

test.each([
  ['{"inputSchema":{}}', undefined],
  ['{"outputSchema":{"type":"object"}}', true],
  ['{"outputSchema":{"type":"array"}}', false],
  ['{"outputSchema":{"anyOf":[]}}', false],
  ['{"outputSchema":{"type":["object","null"]}}', false],
  ['{"outputSchema":true}', false],
  ['{"outputSchema":{"type":"\\u006fbject"}}', true],
])('of the tool %s it is known whether it gives an object: %s', (tool, expected) => {
  const { bytes, node } = scanned(tool);
  expect(toolTraits(bytes, node)?.objectOutput).toBe(expected);
});

test('a tool whose annotations break the rules is no tool', () => {
  const { bytes, node } = scanned(
    '{"inputSchema":{"properties":{"p":{"type":"number","x-mcp-header":"P"}}}}',
  );
  expect(toolTraits(bytes, node)).toBeUndefined();
});
