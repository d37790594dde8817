import assert from 'node:assert/strict';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rope, SseDecoder, SseOverflowError, sseComment, sseEvent } from '../../src/jsonrpc/index.js';
import { space, stringText, valueText } from './json-text.js';

type Seen = { type: string; data: string; id: string | undefined };

function decoderInto(log: unknown[], maxEventBytes = 1 << 20): SseDecoder {
  return new SseDecoder({
    onEvent: ({ type, data, id }) => log.push({ type, data: data.toString(), id } satisfies Seen),
    onRetry: (ms) => log.push(ms),
    onComment: () => log.push('comment'),
    maxEventBytes,
  });
}

/** All calls of the handlers for the stream, in chunks of `size` bytes. */
function decode(stream: string, size = Number.MAX_SAFE_INTEGER): unknown[] {
  const log: unknown[] = [];
  const decoder = decoderInto(log);
  const bytes = Buffer.from(stream);
  for (let at = 0; at < bytes.length; at += size) decoder.push(bytes.subarray(at, at + size));
  decoder.end();
  return log;
}

const message = (data: string, id?: string): Seen => ({ type: '', data, id });

describe('SseDecoder', () => {
  it.each<[string, string, unknown[]]>([
    ['LF', 'data: a\n\ndata: b\n\n', [message('a'), message('b')]],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', [message('a'), message('b')]],
    ['CR', 'data: a\r\rdata: b\r\r', [message('a'), message('b')]],
    [
      'mixed line ends',
      'data: a\r\n\rdata: b\n\r\ndata: c\r\n\n',
      [message('a'), message('b'), message('c')],
    ],
    ['several data lines', 'data:{\ndata\ndata:  }\n\n', [message('{\n\n }')]],
    ['a byte order mark and no space', '\ufeff:hi\ndata:x\n\n', ['comment', message('x')]],
    ['a byte order mark later on', 'data: 1\n\n\ufeffdata: 2\n\n', [message('1')]],
    ['retry and id', 'retry: 5\nid: 9\ndata: x\n\ndata: y\n\n', [5, message('x', '9'), message('y')]],
    [
      'a name',
      'event: ping\ndata: {}\n\ndata: x\n\n',
      [{ type: 'ping', data: '{}', id: undefined }, message('x')],
    ],
    ['the name message', 'event: message\ndata: x\n\n', [message('x')]],
    [
      'the name after the data',
      'data: /m\nevent: endpoint\n\n',
      [{ type: 'endpoint', data: '/m', id: undefined }],
    ],
    ['an event that primes', 'id: 1\ndata:\n\nid: 2\n\n', [message('', '1'), message('', '2')]],
    ['a name without data', 'event: ping\n\ndata: x\n\n', [message('x')]],
    ['an id with NUL', 'id: a\0b\ndata: x\n\n', [message('x')]],
    ['a retry that is no number', 'retry: 5s\nretry:\nretry: 7\n\n', [7]],
    ['unknown fields', 'dat: 1\ndatas: 2\n data: 3\nfoo\ndata: x\n\n', [message('x')]],
    ['an unfinished event', 'data: x\nid: 3', [message('x', '3')]],
    ['an unfinished line', 'data: x', [message('x')]],
    ['nothing unfinished but a name', 'event: x\n', []],
    ['data that look like fields', 'data: data: é\n\n', [message('data: é')]],
  ])('reads %s, however it is cut', (_name, stream, expected) => {
    for (const size of [1, 2, 3, 5, 7, 1000]) expect(decode(stream, size)).toEqual(expected);
  });

  it('delivers at a CR without waiting for the next byte', () => {
    const log: unknown[] = [];
    const decoder = decoderInto(log);
    decoder.push(Buffer.from('data: a\r\n\r'));
    expect(log).toEqual([message('a')]);
    decoder.push(Buffer.from('\ndata: b\r\r'));
    expect(log).toEqual([message('a'), message('b')]);
  });

  it('sets lastEventId once the event is complete', () => {
    const decoder = decoderInto([]);
    decoder.push(Buffer.from('id: 1\ndata: a\n\nid: 2\ndata: b\n'));
    expect(decoder.lastEventId).toBe('1');
    decoder.push(Buffer.from('\ndata: c\n\n'));
    expect(decoder.lastEventId).toBe('2');
    decoder.push(Buffer.from('id\n\n'));
    expect(decoder.lastEventId).toBe('');
  });

  it('refuses an event over the limit, in one line, in many lines and before the line ends', () => {
    const getStream = (stream: string, size: number) => {
      const decoder = decoderInto([], 100);
      for (let at = 0; at < stream.length; at += size) decoder.push(Buffer.from(stream.slice(at, at + size)));
    };
    for (const size of [1, 50, 1000]) {
      expect(() => getStream(`data: ${'x'.repeat(100)}\n\n`, size)).not.toThrow();
      expect(() => getStream(`data: ${'x'.repeat(101)}\n\n`, size)).toThrow(SseOverflowError);
      expect(() => getStream(`data: ${'x'.repeat(200)}`, size)).toThrow(SseOverflowError);
      expect(() => getStream('data: x\n'.repeat(60), size)).toThrow(SseOverflowError);
      expect(() => getStream('data\n'.repeat(110), size)).toThrow(SseOverflowError);
      expect(() => getStream(`${`data: ${'x'.repeat(90)}\n\n`.repeat(5)}`, size)).not.toThrow();
    }
  });

  it('reads an event of 64 MiB in chunks of 16 KiB in linear time', () => {
    const chunk = Buffer.alloc(16 * 1024, 'x');
    let length = 0;
    const decoder = new SseDecoder({
      onEvent: ({ data }) => (length = data.length),
      maxEventBytes: 64 << 20,
    });
    const start = performance.now();
    decoder.push(Buffer.from('data: '));
    for (let i = 0; i < 4096; i++) decoder.push(chunk);
    decoder.push(Buffer.from('\n\n'));
    expect(length).toBe(64 << 20);
    expect(performance.now() - start).toBeLessThan(3000);
  });

  it('agrees with eventsource-parser on streams that both define alike', () => {
    const lineEnd = fc.constantFrom('\n', '\r', '\r\n');
    const value = fc.constantFrom(
      '',
      'x',
      ' x',
      '{"a":1}',
      'é😀',
      'data: y',
      'x'.repeat(3000),
      'message',
      '\0',
      ':',
    );
    const line = (names: string[]) =>
      fc.tuple(fc.constantFrom(...names), value).map(([name, text]) => name + text);
    const other = line([
      'event:',
      'event: ',
      ':',
      'foo: ',
      'event',
      'retry: 1',
      'retry: ',
      'data :',
      'DATA:',
      'ida',
    ]);
    const data = line(['data:', 'data: ', 'data:  ']);
    // An event that sets an id and has no data is the one thing that is taken differently on purpose.
    const withData = fc
      .tuple(
        fc.array(fc.oneof(other, data, line(['id:', 'id: ']), fc.constant('id')), { maxLength: 4 }),
        data,
        fc.array(other, { maxLength: 2 }),
      )
      .map(([before, middle, after]) => [...before, middle, ...after]);
    const block = fc.oneof(withData, fc.array(other, { maxLength: 3 })).map((lines) => [...lines, '']);
    const stream = fc
      .array(block, { maxLength: 6 })
      .chain((blocks) =>
        fc.tuple(fc.boolean(), ...blocks.flat().map((text) => lineEnd.map((ending) => text + ending))),
      )
      .map(([mark, ...lines]) => `${mark ? '\ufeff' : ''}${lines.join('')}\n\n\n`);

    fc.assert(
      fc.property(stream, fc.array(fc.nat(40), { maxLength: 30 }), (text, cuts) => {
        const bytes = Buffer.from(text);
        const expected: unknown[] = [];
        const peer = createParser({
          onEvent: ({ event, data, id }) =>
            expected.push({ type: event === 'message' ? '' : (event ?? ''), data, id }),
          onRetry: (ms) => expected.push(ms),
          onComment: () => expected.push('comment'),
        });
        const utf8 = new TextDecoder();
        const log: unknown[] = [];
        const decoder = decoderInto(log);
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          const chunk = bytes.subarray(at, at + cut);
          at += cut;
          decoder.push(chunk);
          peer.feed(utf8.decode(chunk, { stream: true }));
        }
        decoder.end();
        assert.deepEqual(log, expected);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('sseEvent', () => {
  const text = (rope: Rope) => rope.toBuffer().toString();

  it('writes one data line', () => {
    expect(text(sseEvent(new Rope().push('{"a":1}')))).toBe('event: message\ndata: {"a":1}\n\n');
    expect(text(sseEvent(new Rope().push('{}'), { event: 'endpoint', id: '4' }))).toBe(
      'event: endpoint\nid: 4\ndata: {}\n\n',
    );
  });

  it('writes line ends between tokens as spaces, and does not change the frame', () => {
    for (const length of [1, 100_000]) {
      const source = Buffer.from(`{\r\n  "a": "${'x'.repeat(length)}"\n}`);
      const before = source.toString();
      for (const frame of [new Rope().push(source), new Rope().push('[').push(source).push('\n]')]) {
        const event = text(sseEvent(frame));
        expect(event).toMatch(/^event: message\ndata: [^\r\n]*\n\n$/);
        const data = event.slice('event: message\ndata: '.length, -2);
        expect(JSON.parse(data)).toEqual(JSON.parse(text(frame)));
      }
      expect(source.toString()).toBe(before);
    }
  });

  it('is decoded to what was written', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(valueText, space)), stringText, (values, id) => {
        const frames = values.map(([value, gap]) => gap + value);
        const stream = frames
          .map((frame) => text(sseEvent(new Rope().push(frame), { id: encodeURI(JSON.stringify(id)) })))
          .join(sseComment('keep-alive'));
        const seen = decode(stream, 11).filter((entry): entry is Seen => typeof entry === 'object');
        assert.deepEqual(
          seen.map(({ data }) => data),
          frames.map((frame) => frame.replace(/[\r\n]/g, ' ')),
        );
      }),
      { numRuns: 200 },
    );
  });
});

describe('sseComment', () => {
  it('is a comment to any reader', () => {
    expect(sseComment()).toBe(':\n\n');
    expect(decode(sseComment('keep-alive'))).toEqual(['comment']);
  });
});
