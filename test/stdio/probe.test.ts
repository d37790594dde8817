import { expect, test } from 'vitest';
import { probeServer } from '../../src/routes/probe.js';
import { SERVER } from './rig.js';

const probe = (options: object) =>
  probeServer([process.execPath, SERVER, JSON.stringify(options)], { timeoutMs: 2_000 });

test('probe reports what a server on standard streams speaks', async () => {
  const [legacy, modern, broken] = await Promise.all([
    probe({}),
    probe({ era: 'modern' }),
    probe({ exitAt: 3 }),
  ]);
  expect(legacy).toMatchObject({
    command: expect.arrayContaining([SERVER]),
    era: 'legacy',
    transport: 'stdio',
    revisions: ['2025-11-25'],
    serverInfo: { name: 'by-hand' },
    sessions: 'each process is a session',
    reasons: [
      'server/discover: not-modern, answered server/discover with -32601 Method not found: server/discover',
      'initialize: legacy, answered with 2025-11-25',
    ],
  });
  expect(modern).toMatchObject({ era: 'modern', transport: 'stdio', revisions: ['2026-07-28'] });
  expect(broken.era).toBe('unknown');
  expect(broken.reasons.join('\n')).toContain('it exited with code 3; cannot find the configuration');
});

test('a missing program is unknown', async () => {
  const { era, reasons } = await probeServer(['/not/there'], { timeoutMs: 1_000 });
  expect(era).toBe('unknown');
  expect(reasons.at(-1)).toBe('server/discover: unreachable, it cannot be started (ENOENT)');
});
