import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLIENT_KINDS, type ClientKind, connect, type TestClient } from '../support/clients.js';
import type { Peer } from '../support/peers/index.js';
import { record, type Tap } from '../support/tap.js';
import { SCENARIOS } from './scenarios.js';
import { SUBJECTS, type Subject } from './subjects.js';

/** The eras meet without a gateway. */
function speaks(kind: ClientKind, subject: Subject): boolean {
  if (kind === 'v2 pin') return subject.era !== 'legacy';
  return kind === 'v2 auto' || subject.era !== 'modern';
}

// What fails here fails in the peers or in these tests, not in the gateway.
describe.each(SUBJECTS)('$name, without a gateway', (subject) => {
  const recording = record(['client', 'gateway']);
  let peer: Peer;
  let tap: Tap;
  beforeAll(async () => {
    peer = await subject.start();
    tap = await recording.client(peer.url);
  });
  afterAll(async () => {
    await tap.close();
    await peer.close();
  });

  describe.each(CLIENT_KINDS.filter((kind) => speaks(kind, subject)))('client %s', (kind) => {
    let client: TestClient;
    // The v2 server's legacy leg has no sessions, so that a cancellation arrives nowhere.
    const aborts = subject.aborts && !(subject.era === 'both' && /v1|legacy/.test(kind));
    const another = () => connect(kind, tap.url);
    beforeAll(async () => {
      client = await another();
    });
    afterAll(() => client.close());

    test.each(Object.entries(SCENARIOS))('%s', (_sentence, scenario) =>
      scenario({ client, subject, peer, aborts, another }),
    );
  });

  test('shows frames that fit their schemas', () => {
    expect(recording.frames.length).toBeGreaterThan(20);
    // Legacy servers refuse the probe of a modern client without having read its id.
    const expected = subject.era === 'legacy' ? /server\/discover: answer with id null$/ : /^$/;
    expect(recording.violations.filter((violation) => !expected.test(violation))).toEqual([]);
  });
});
