import { expect, test } from 'vitest';
import { writeError } from '../../../../src/eras/legacy/client/outcome.js';
import { readCapabilities } from '../../../../src/exchange/client-capabilities.js';
import type { Exchange } from '../../../../src/exchange/exchange.js';
import { ownError } from '../../../../src/exchange/outcome.js';

test('an error is sent under the id as the client wrote it', () => {
  const exchange = {
    request: { id: '"\\u0041"', method: 'tools/call', name: 'n' },
    caller: { neutralCapabilities: readCapabilities('{}') },
  } as unknown as Exchange;
  let sent: [number, string] = [0, ''];
  writeError(ownError({ code: -32603, message: 'm' }), exchange, (status, message) => {
    sent = [status, message.toBuffer().toString()];
  });
  expect(sent).toEqual([200, '{"jsonrpc":"2.0","id":"\\u0041","error":{"code":-32603,"message":"m"}}']);
});
