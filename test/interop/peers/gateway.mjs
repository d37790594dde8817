// Eragate as it is installed: the built command with a configuration file. ERAGATE_MAIN names another build.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort, scratchFolder, start, untilListening } from './processes.mjs';

const MAIN = process.env.ERAGATE_MAIN ?? fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

/**
 * Starts a gateway with these routes. `seen(path)` gives (later) the cells in which requests of a route were answered, and
 * `logOf(path)` what the gateway had to say of it.
 */
export async function startGateway(routes) {
  if (!existsSync(MAIN)) throw new Error('dist/main.js is missing: npm run build makes it');
  const port = await freePort();
  const file = join(scratchFolder(), 'gateway.yaml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ listen: { host: '127.0.0.1', port }, routes }));
  const cells = new Map();
  const log = [];
  const gateway = start({ command: process.execPath, args: [MAIN, 'serve', '--config', file] }, (line) => {
    log.push(line);
    const record = recordOf(line);
    if (record?.cell === undefined) return;
    if (!cells.has(record.route)) cells.set(record.route, new Set());
    cells.get(record.route).add(record.cell);
  });
  await untilListening(gateway, port);
  return {
    origin: `http://127.0.0.1:${port}`,
    async seen(path) {
      for (let n = 0; n < 20; n += 1) {
        const whole = [...(cells.get(path) ?? [])].filter((cell) => !cell.endsWith('-'));
        if (whole.length > 0) return whole.sort();
        // The log may be behind.
        await delay(50);
      }
      return [...(cells.get(path) ?? [])];
    },
    logOf: (path) => log.filter((line) => line.includes(`"${path}"`)).join('\n'),
    stop: gateway.stop,
  };
}

function recordOf(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
