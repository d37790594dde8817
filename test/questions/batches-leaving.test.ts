import { expect, test } from 'vitest';
import { startCell } from '../support/cells.js';
import { until } from '../support/net.js';
import { open } from '../support/raw.js';

test('the calls of a batch that asked their client are all given up when it leaves for good', async () => {
  const rig = await startCell('LM', {
    handshake: { version: '2025-03-26', capabilities: { sampling: {} } },
    // Nothing is kept for the client, so it cannot come back.
    config: { limits: { replay: 0 } },
  });
  try {
    const question = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };
    rig.on('tools/call', () => ({
      result: { resultType: 'input_required', inputRequests: { q: question }, requestState: 's' },
    }));
    const session = await rig.session();
    const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'ask' } });
    const stream = await open(rig.gateway.url(), { headers: session.headers, body: [1, 2, 3].map(call) });
    await until(() => stream.events.length === 3, 'the questions of all calls');
    stream.abort();
    await until(
      () => rig.gateway.logs.filter(({ method }) => method === 'tools/call').length === 3,
      'the end of all calls',
    );
    expect(rig.backend.received('tools/call')).toHaveLength(3);
  } finally {
    await rig.close();
  }
});
