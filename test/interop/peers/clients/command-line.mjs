// Helpers for clients that are commands.
import { execFile } from 'node:child_process';

/** Runs a Node script: what it prints on both streams, and the exit code. */
export function node(script, args) {
  return new Promise((resolve) => {
    execFile(process.execPath, [script, ...args], { maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? -1), stdout, stderr });
    });
  });
}

/** What a command printed when it went well. */
export async function printed(script, args) {
  const { code, stdout, stderr } = await node(script, args);
  if (code !== 0) throw new Error(`exit ${code}: ${stderr || stdout}`);
  return stdout;
}

export const packagePath = (path) => new URL(`../node_modules/${path}`, import.meta.url).pathname;
