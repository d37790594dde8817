import type { CommandContext } from '../../src/commands/context.js';
import type { ProbeReport } from '../../src/routes/probe-report.js';

/** A context that collects the output, and fails where a command uses a gateway or a server that the test does not provide. */
export function testContext(parts: Partial<CommandContext> = {}) {
  const printed = { stdout: '', stderr: '' };
  const context: CommandContext = {
    stdout: (text) => {
      printed.stdout += text;
    },
    stderr: (text) => {
      printed.stderr += text;
    },
    env: {},
    createGateway: () => Promise.reject(new Error('no gateway in this test')),
    probeServer: (): Promise<ProbeReport> => Promise.reject(new Error('no server in this test')),
    ...parts,
  };
  return { context, printed };
}

export function example(name: string): string {
  return new URL(`../../config/${name}`, import.meta.url).pathname;
}
