// The built gateway as a process, in front of the fixture servers.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/**
 * @param backends route path -> url of the server behind it, or the whole route
 * @param folder for its configuration and log
 * @returns `{ url(path), close }`
 */
export async function startGateway(backends, folder) {
  if (!existsSync(MAIN)) throw new Error('The gateway is not built: npm run build');
  const routes = Object.entries(backends).map(([path, given]) => ({
    path,
    questions: { roots: 'ask' },
    ...(typeof given === 'string' ? { backend: { url: given } } : given),
  }));
  const file = join(folder, 'gateway.yaml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ listen: { host: '127.0.0.1', port: 0 }, routes }));
  const child = spawn(process.execPath, [MAIN, 'serve', '--config', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const stop = () => child.kill('SIGKILL');
  process.once('exit', stop);
  const log = createWriteStream(join(folder, 'gateway.log'));
  child.stdout.pipe(log);
  const origin = await new Promise((resolve, reject) => {
    let seen = '';
    child.stdout.on('data', (chunk) => {
      seen += chunk;
      const found = /"url":"([^"]+)"/.exec(seen);
      if (found) resolve(found[1]);
    });
    child.once('exit', (code) => reject(new Error(`The gateway ended with ${code}: ${seen}`)));
  });
  return {
    url: (path) => new URL(path, origin).href,
    async close() {
      process.off('exit', stop);
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
