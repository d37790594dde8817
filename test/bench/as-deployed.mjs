// npm run bench: the bench on the Node that the image runs, since on another a request may cost a fifth more. All that is measured
// runs on it. `node test/bench/bench.mjs` does the same on the Node that it is started with.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { imageNode } from '../support/fetched.mjs';

const bench = fileURLToPath(new URL('bench.mjs', import.meta.url));
const child = spawn(await imageNode(), [bench, ...process.argv.slice(2)], { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
