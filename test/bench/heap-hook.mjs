// Preloaded into a gateway whose heap is measured (`node --expose-gc --import`): answers any message on the IPC channel
// with the bytes that survive a garbage collection, buffers outside the heap included.

import { setTimeout as delay } from 'node:timers/promises';

process.on('message', async () => {
  globalThis.gc();
  // Finalizers and weak references clear between two collections.
  await delay(200);
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  process.send({ heapBytes: heapUsed + external });
});
process.channel.unref();
