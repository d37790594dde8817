import { ConfigError, formatProblem, parseConfig } from '../../src/config/index.js';

/** The lines of the message; an empty list if the text is valid. */
export function problemsOf(text: string, env: Record<string, string> = {}): string[] {
  try {
    parseConfig(text, 'gateway.yaml', env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem);
    throw error;
  }
}

/** A valid file with more members of the only route's backend, as a flow mapping. */
export function withBackend(members: string): string {
  return `routes:\n  - path: /mcp\n    backend: { url: "http://b:1/mcp", ${members} }\n`;
}

/** A valid file with one more line at the top level. */
export function withLine(line: string): string {
  return `${line}\nroutes: [{ path: /mcp, backend: { url: "http://b:1/mcp" } }]\n`;
}
