import { describe, expect, it, vi } from 'vitest';
import { abortable, pause } from '../../../src/exchange/utils/abortable.js';

describe('waiting for a promise until a signal is aborted', () => {
  it('gives the value where that comes first', async () => {
    const { signal } = new AbortController();
    await expect(abortable(signal, Promise.resolve(1))).resolves.toBe(1);
  });

  it('gives the error of the promise where that comes first', async () => {
    const { signal } = new AbortController();
    await expect(abortable(signal, Promise.reject(new Error('no')))).rejects.toThrow('no');
  });

  it('rejects with the reason of the signal, and hands over what comes late', async () => {
    const controller = new AbortController();
    const leave = vi.fn();
    const late = vi.fn();
    let come = (_: number): void => {};
    const wanted = new Promise<number>((resolve) => {
      come = resolve;
    });
    const waiting = abortable(controller.signal, wanted, { leave, late });
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect(leave).toHaveBeenCalledOnce();
    come(7);
    await wanted;
    expect(late).toHaveBeenCalledExactlyOnceWith(7);
  });

  it('does not wait at all on a signal that was aborted before', async () => {
    await expect(abortable(AbortSignal.abort(new Error('over')), new Promise(() => {}))).rejects.toThrow(
      'over',
    );
  });

  it('swallows an error that comes late', async () => {
    const failing = Promise.reject(new Error('late'));
    await expect(abortable(AbortSignal.abort(new Error('over')), failing)).rejects.toThrow('over');
  });
});

describe('a pause', () => {
  it('ends when its time is over', async () => {
    await pause(1, new AbortController().signal);
  });

  it('ends at once with the reason of the signal', async () => {
    const controller = new AbortController();
    const pausing = pause(60_000, controller.signal);
    controller.abort(new Error('enough'));
    await expect(pausing).rejects.toThrow('enough');
  });

  it('does not begin on a signal that was aborted before', async () => {
    await expect(pause(60_000, AbortSignal.abort(new Error('over')))).rejects.toThrow('over');
  });
});
