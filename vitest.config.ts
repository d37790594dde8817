import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Long runs with commands of their own.
    exclude: ['test/bench/**', 'test/conformance/**'],
    // Real servers are started and stopped, on machines that may be busy.
    testTimeout: 20_000,
    // Most of them wait more than they compute; one worker less than there are processors would be one on two.
    maxWorkers: '100%',
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    // A forgotten `.only` must not pass for a whole run.
    allowOnly: false,
    reporters: ['default', './test/support/left-out.ts'],
  },
});
