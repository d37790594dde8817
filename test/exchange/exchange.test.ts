import { describe, expect, it, vi } from 'vitest';
import type { Channel } from '../../src/exchange/channel.js';
import { ExchangeError } from '../../src/exchange/errors.js';
import { Exchange } from '../../src/exchange/exchange.js';

const BYTES = Buffer.from('{}');
const CHANNEL: Channel = {
  notify: () => true,
  onDrain: (resume) => resume(),
  ask: async () => ({ result: BYTES }),
};

function start(channel: Channel = CHANNEL) {
  const request = {
    id: '1',
    method: 'tools/call',
    params: { bytes: BYTES, node: undefined, meta: undefined, envelopeKeys: [] },
    name: 'tool',
    progressToken: '"a"',
    resumes: false,
    raw: undefined,
    paramHeaders: [],
  };
  const caller = { era: 'modern', forwarded: { authorization: 'Bearer first' } };
  return new Exchange(request as never, caller as never, channel);
}

const SERVER_REQUEST = { id: '7', method: 'ping', bytes: BYTES, params: undefined } as never;

describe('observers of an exchange', () => {
  it('are all notified, in the order in which they attached', async () => {
    const exchange = start();
    const seen: string[] = [];
    for (const name of ['a', 'b']) {
      exchange.attach({
        onCancelled: (reason) => void seen.push(`${name} cancelled: ${reason}`),
        onServerRequest: () => void seen.push(`${name} asked`),
        onParked: () => void seen.push(`${name} parked`),
        onUnparked: () => void seen.push(`${name} unparked`),
      });
    }
    await exchange.ask(SERVER_REQUEST);
    exchange.park();
    exchange.unpark(undefined);
    exchange.cancel('enough');
    expect(seen).toEqual([
      'a asked',
      'b asked',
      'a parked',
      'b parked',
      'a unparked',
      'b unparked',
      'a cancelled: enough',
      'b cancelled: enough',
    ]);
  });

  it('are notified no more once they are detached, and may detach themselves', () => {
    const exchange = start();
    const first = vi.fn();
    const last = vi.fn();
    const attached = exchange.attach({ onParked: () => attached[Symbol.dispose](), onCancelled: first });
    exchange.attach({ onParked: last });
    exchange.park();
    exchange.cancel('enough');
    expect(last).toHaveBeenCalledOnce();
    expect(first).not.toHaveBeenCalled();
  });

  it('that attach after the cancellation are notified of it at once', () => {
    const exchange = start();
    exchange.cancel('enough');
    exchange.cancel('again');
    const onCancelled = vi.fn();
    exchange.attach({ onCancelled });
    expect(onCancelled).toHaveBeenCalledExactlyOnceWith('enough');
  });
});

describe('the signal of an exchange', () => {
  it('is aborted with the error that the exchange ends with', () => {
    const exchange = start();
    const { signal } = exchange;
    expect(signal.aborted).toBe(false);
    exchange.cancel('enough');
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(ExchangeError);
    expect(signal.reason.message).toContain('enough');
  });

  it('is one, and aborted from the start where it is asked for after the cancellation', () => {
    const exchange = start();
    exchange.cancel('enough');
    expect(exchange.signal.aborted).toBe(true);
    expect(exchange.signal).toBe(exchange.signal);
  });

  it('is aborted when time is up', () => {
    const exchange = start();
    exchange.limit(1_000);
    exchange.tick(exchange.startedAt + 999);
    expect(exchange.signal.aborted).toBe(false);
    exchange.tick(exchange.startedAt + 1_000);
    expect(exchange.signal.aborted).toBe(true);
    expect(exchange.timedOut).toBe(true);
  });

  it('is not aborted by time while the client is away with server requests', () => {
    const exchange = start();
    exchange.limit(1_000);
    exchange.park();
    exchange.tick(exchange.startedAt + 5_000);
    expect(exchange.cancelled).toBeUndefined();
    exchange.unpark('"b"');
    expect(exchange.progressToken).toBe('"b"');
    exchange.tick(performance.now() + 1_001);
    expect(exchange.cancelled).toBe('time is up');
  });
});

describe('credentials of a client that comes back', () => {
  it('have nothing to be tried on where nobody holds anything of the backend', () => {
    const exchange = start();
    exchange.attach({ onCancelled: () => {} });
    expect(exchange.tryCredentials({})).toBeUndefined();
  });

  it('have to be taken by all that were tried', async () => {
    const exchange = start();
    exchange.attach({ tryCredentials: async () => true });
    await expect(exchange.tryCredentials({})).resolves.toBeDefined();
    exchange.attach({ tryCredentials: () => Promise.reject(new Error('refused')) });
    await expect(exchange.tryCredentials({})).rejects.toThrow('refused');
  });

  it('that come with an answer serve from then on', async () => {
    const forwarded = { authorization: 'Bearer second' };
    const exchange = start({ ...CHANNEL, ask: async () => ({ result: BYTES, forwarded }) });
    await exchange.ask(SERVER_REQUEST);
    expect(exchange.caller.forwarded).toBe(forwarded);
  });
});
