#!/usr/bin/env node
import { runCommandLine } from './commands/command-line.js';

// The gateway is imported only by commands that run it: `check` and `--help` need no HTTP server.
process.exitCode = await runCommandLine(process.argv.slice(2), {
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  env: process.env,
  createGateway: async (config, options) => (await import('./gateway.js')).createGateway(config, options),
  probeServer: async (url, options) => (await import('./routes/probe.js')).probeServer(url, options),
});
