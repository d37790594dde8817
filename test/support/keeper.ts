import { afterEach } from 'vitest';

/**
 * For the tests of a file: gives `keep`, which passes on what a test has opened, to be closed when the test is over, the
 * last first.
 */
export function keeper() {
  const open: { close(): unknown }[] = [];
  afterEach(async () => {
    for (const part of open.splice(0).reverse()) await part.close();
  });
  return async <T extends { close(): unknown }>(part: T | Promise<T>): Promise<T> => {
    const opened = await part;
    open.push(opened);
    return opened;
  };
}
