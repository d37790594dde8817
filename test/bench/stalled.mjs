// Whether listeners that read pay for one that does not.

import { Fleet } from './fleet.mjs';
import { median } from './rounds.mjs';

const READERS = 20;
// Together some 12 MiB, three times what the kernel takes in for a socket that nobody reads.
const CHANGES = 200;
const PADDING = 64 * 1024;
const WARM_UP = 100;

/** Announces changes one after the other to `readers`; returns the milliseconds that each took to reach all of them. */
async function series(readers, announce, count) {
  const times = [];
  for (let i = 0; i < count; i++) times.push(await readers.reach(() => announce(PADDING)));
  return times;
}

/**
 * Announces large changes to a few listeners at `url`, in alternating series: among themselves, and beside one that opens
 * its stream and reads no more. Returns `{ without, with, ratio }`: median milliseconds until a change has reached all
 * that read.
 */
export async function measureStalled(kind, url, announce, { rounds }) {
  const readers = new Fleet();
  await readers.open(kind, url, READERS);
  await series(readers, announce, WARM_UP);
  const alone = [];
  const beside = [];
  for (let i = 0; i < rounds; i++) {
    alone.push(...(await series(readers, announce, CHANGES)));
    const stalled = new Fleet();
    await stalled.open(kind, url, 1);
    stalled.stall();
    beside.push(...(await series(readers, announce, CHANGES)));
    stalled.close();
  }
  readers.close();
  const [without, withOne] = [median(alone), median(beside)];
  return { without, with: withOne, ratio: withOne / without };
}
