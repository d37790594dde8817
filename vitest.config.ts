import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import LongFirst from './test/support/long-first.js';

/**
 * Tests with child processes, large bodies, crowds or many real servers. In all others, the `fast` ones, the gateway and both of its
 * sides run in the process of the tests, and nothing needs to be built.
 */
const LONG = [
  'test/*/{everything,python}.test.ts',
  'test/{demo,docker,interop,stdio}/**/*.test.ts',
  'test/eras/one-era-alone.test.ts',
  'test/cases/era/redeployed-backend.test.ts',
  'test/cases/fidelity/large-bodies.test.ts',
  'test/cases/frames/orders.test.ts',
  'test/cases/operations/{log-output,open-files,shutdown}.test.ts',
  'test/cases/sessions/orphans.test.ts',
  'test/cases/streams/slow-readers.test.ts',
  'test/http-sse/{backends,endpoints,peers}.test.ts',
  'test/questions/{crowd-*,legs,limits-memory,replaced-sessions}.test.ts',
  'test/subscriptions/{contract,restart}.test.ts',
  'test/tasks/official-client.test.ts',
];

const TESTS = ['test/**/*.test.ts'];
/** Long runs with commands of their own. */
const COMMANDS = ['test/bench/**', 'test/conformance/**'];

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'fast', include: TESTS, exclude: [...COMMANDS, ...LONG] } },
      { extends: true, test: { name: 'long', include: LONG, exclude: COMMANDS } },
    ],
    // A process of its own for each file costs more than most files do. Nothing may be left behind by a test.
    isolate: false,
    // By default there is one worker fewer than there are cores: one on a machine of two.
    maxWorkers: Math.max(2, Math.floor(availableParallelism() / 2)),
    sequence: { sequencer: LongFirst },
    // Real servers are started and stopped, on machines that may be busy.
    testTimeout: 20_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    coverage: { include: ['src/**/*.ts'], reporter: ['text', 'json-summary'], reportOnFailure: true },
    // A forgotten `.only` must not pass for a whole run.
    allowOnly: false,
    reporters: ['default', './test/support/left-out.ts'],
  },
});
