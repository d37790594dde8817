import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Long runs with commands of their own.
    exclude: ['test/bench/**', 'test/conformance/**'],
    // Real servers are started and stopped, on machines that may be busy.
    testTimeout: 20_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    // A forgotten `.only` must not pass for a whole run.
    allowOnly: false,
    reporters: ['default', './test/support/left-out.ts'],
  },
});
