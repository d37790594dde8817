import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALL_CAPABILITIES, person, type Rig, startRig, textOf } from '../questions/rig.js';
import { startEverything } from '../support/peers/index.js';

const TOOL = 'simulate-research-query';

describe('server-everything', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(startEverything);
  });
  afterAll(() => rig?.close());

  test('runs a tool that has to be a task for a modern client that knows no tasks', async () => {
    const client = await rig.connect('v2 auto', { capabilities: {} });
    const result = await client.callTool(TOOL, { topic: 'bees' });
    expect(textOf(result)).toContain('# Research Report: bees');
  }, 20_000);

  test('asks such a client what the task wants to know', async () => {
    const someone = person({ form: () => ({ action: 'accept', content: { interpretation: 'historical' } }) });
    const client = await rig.connect('v2 auto', {
      handlers: someone.handlers,
      capabilities: ALL_CAPABILITIES,
    });
    const result = await client.callTool(TOOL, { topic: 'bees', ambiguous: true });
    expect(textOf(result)).toContain('# Research Report: bees (historical)');
    expect(someone.asked).toHaveLength(1);
  }, 20_000);
});
