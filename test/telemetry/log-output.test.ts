import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LogOutput, type WriteBytes } from '../../src/telemetry/log-output.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An output that holds some bytes, then fails with a code; `Infinity` bytes never fail. */
class Disk {
  text = '';
  free = Number.POSITIVE_INFINITY;
  code = 'ENOSPC';
  attempts = 0;

  readonly write: WriteBytes = (bytes, done) => {
    this.attempts++;
    const written = Math.min(bytes.length, this.free);
    this.free -= written;
    this.text += bytes.subarray(0, written).toString();
    if (written > 0) done(null, written);
    else done(Object.assign(new Error(this.code), { code: this.code }), 0);
  };
}

const open = (disk: { write: WriteBytes }): LogOutput =>
  new LogOutput({ write: disk.write, lossLine: (lost) => `lost ${lost}\n` });

test('lines are written in batches and in order', async () => {
  const disk = new Disk();
  const output = open(disk);
  output.write('a\n');
  output.write('b\n');
  expect(disk.text).toBe('');
  await vi.advanceTimersByTimeAsync(300);
  expect(disk).toMatchObject({ text: 'a\nb\n', attempts: 1 });
});

test('lines that a full disk does not take are lost, and their number is told once it takes lines again', async () => {
  const disk = new Disk();
  disk.free = 6;
  const output = open(disk);
  for (const line of ['one\n', 'two\n', 'three\n']) output.write(line);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(disk.text).toBe('one\ntw');
  output.write('four\n');
  await vi.advanceTimersByTimeAsync(2_000);
  disk.free = Number.POSITIVE_INFINITY;
  await vi.advanceTimersByTimeAsync(300);
  output.write('five\n');
  await vi.advanceTimersByTimeAsync(300);
  expect(disk.text).toBe('one\ntw\nlost 3\nfive\n');
});

test('lines for a reader that is slow are written when it reads on', async () => {
  const disk = new Disk();
  Object.assign(disk, { free: 2, code: 'EAGAIN' });
  const output = open(disk);
  output.write('one\n');
  await vi.advanceTimersByTimeAsync(1_000);
  output.write('two\n');
  disk.free = Number.POSITIVE_INFINITY;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(disk.text).toBe('one\ntwo\n');
});

test('lines beyond the limit are lost where nobody reads, and counted', async () => {
  const disk = new Disk();
  Object.assign(disk, { free: 0, code: 'EAGAIN' });
  const output = open(disk);
  output.write('first\n');
  output.flush();
  const line = `${'x'.repeat(1_023)}\n`;
  for (let i = 0; i < 5_000; i++) output.write(line);
  disk.free = Number.POSITIVE_INFINITY;
  await vi.advanceTimersByTimeAsync(1_000);
  const [first, notice, ...rest] = disk.text.trimEnd().split('\n');
  expect([first, notice]).toEqual(['first', `lost ${5_000 - rest.length}`]);
  expect(rest.length).toBe(4_096);
});

test('a write that never returns does not keep the end waiting beyond its time', async () => {
  const output = open({ write: () => {} });
  output.write('a\n');
  let closed = false;
  void output.close(400).then(() => {
    closed = true;
  });
  await vi.advanceTimersByTimeAsync(399);
  expect(closed).toBe(false);
  await vi.advanceTimersByTimeAsync(2);
  expect(closed).toBe(true);
});

test('the end comes once the last line is written', async () => {
  const disk = new Disk();
  const output = open(disk);
  output.write('last\n');
  await output.close(400);
  expect(disk.text).toBe('last\n');
});
