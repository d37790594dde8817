import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLIENT_KINDS, connect, type TestClient } from '../support/clients.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import type { Peer } from '../support/peers/index.js';
import { record, type Tap } from '../support/tap.js';
import { RESTARTS, SCENARIOS } from './scenarios.js';
import { SUBJECTS } from './subjects.js';

const SEAL_KEY = Buffer.alloc(32, 7).toString('base64');

// Every client of every era with every server of every era, through one gateway; both links are watched.
describe.each(SUBJECTS)('$name', (subject) => {
  const recording = record();
  const opened: { close(): Promise<void> }[] = [];
  let peer: Peer;
  let gateway: TestGateway;
  let front: Tap;
  beforeAll(async () => {
    peer = await subject.start();
    opened.push(peer);
    const back = await recording.backend(peer.url);
    opened.push(back);
    gateway = await startGateway({ '/mcp': back.url }, { sealKeys: [SEAL_KEY] });
    opened.push(gateway);
    front = await recording.client(gateway.url());
    opened.push(front);
  });
  afterAll(async () => {
    for (const part of opened.reverse()) await part.close();
  });

  describe.each(CLIENT_KINDS)('client %s', (kind) => {
    let client: TestClient;
    const another = () => connect(kind, front.url);
    const pair = () => ({ client, subject, peer, aborts: subject.aborts, another });
    beforeAll(async () => {
      client = await another();
    });
    afterAll(() => client?.close());

    test('speaks the era that it prefers', () => {
      expect(client.era).toBe(kind === 'v1' || kind === 'v2 legacy' ? 'legacy' : 'modern');
    });
    test.each(Object.entries(SCENARIOS))('%s', (_sentence, scenario) => scenario(pair()));
    test.each(Object.entries(RESTARTS))('%s', (_sentence, scenario) =>
      scenario({ ...pair(), restartGateway: () => gateway.restart() }),
    );
  });

  test('sees only frames of the gateway that fit the schema of their revision', () => {
    expect(recording.frames.filter(({ by }) => by === 'gateway').length).toBeGreaterThan(50);
    expect(recording.violations).toEqual([]);
  });
});
