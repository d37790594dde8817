import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import {
  type ScriptedBackend,
  type Step,
  startLegacyBackend,
  startModernBackend,
} from '../../support/misbehave.js';
import { type Loose, sleep, until } from '../../support/net.js';
import { type LegacySession, legacy, modern, openModern, type RawStream } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

/** Writes one message as an event. */
type Dialect = (json: string) => string;

/** JSON text over several lines, none of which is a JSON text of its own. */
const inLines = (json: string) => json.replace(/([{,])/g, '$1\n').split('\n');

const DIALECTS: Record<string, Dialect> = {
  LF: (json) => `event: message\ndata: ${json}\n\n`,
  CRLF: (json) => `event: message\r\ndata: ${json}\r\n\r\n`,
  CR: (json) => `event: message\rdata: ${json}\r\r`,
  'LF, CRLF and CR mixed': (json) => `event: message\r\ndata: ${json}\n\r\n: x\r\n`,
  'no event name': (json) => `data: ${json}\n\n`,
  'an empty event name': (json) => `event\ndata: ${json}\n\n`,
  'the event name after the data': (json) => `data: ${json}\nevent: message\n\n`,
  'no space after the colon': (json) => `event:message\ndata:${json}\n\n`,
  'many spaces after the colon': (json) => `data:    ${json}   \n\n`,
  'several data lines': (json) =>
    `${inLines(json)
      .map((line) => `data: ${line}\n`)
      .join('')}\n`,
  'several data lines in CRLF': (json) =>
    `${inLines(json)
      .map((line) => `data: ${line}\r\n`)
      .join('')}\r\n`,
  'comments around and inside': (json) => `: one\n:\n\n:two\ndata: ${json}\n: three\n\n:four\n\n`,
  'an id and a retry': (json) => `id: 7\nretry: 5\ndata: ${json}\n\n`,
  'an id of spaces and colons, and a retry that is no number': (json) =>
    `id: a: b c\nretry: soon\ndata: ${json}\n\n`,
  'unknown fields': (json) => `foo: bar\ndatax: {}\nData: {}\n data: {}\ndata: ${json}\nbaz\n\n`,
  'events of other names before it': (json) =>
    `event: ping\ndata: {"a":1}\n\nevent: endpoint\ndata: /mcp\n\ndata: ${json}\n\n`,
  'an event of another name that looks like the answer': (json) =>
    `event: prime\ndata: ${json.replace('fine', 'wrong')}\n\ndata: ${json}\n\n`,
  'empty events before it': (json) =>
    `\n\ndata\n\ndata:\n\nevent: message\n\nid: 1\n\nid: 2\ndata:\n\ndata: ${json}\n\n`,
  'what is no JSON before it': (json) =>
    `data: hello\n\ndata: {"jsonrpc":"2.0"\n\ndata: [DONE]\n\ndata: ${json}\n\n`,
};

const progress = (token: unknown) =>
  JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken: token, progress: 1 },
  });

function answerOf({ frame }: Step): string {
  const content = [{ type: 'text', text: 'fine: "ü € 😀"' }];
  return JSON.stringify(frame({ result: { resultType: 'complete', content } }));
}

describe.each(['legacy', 'modern'] as const)('a %s backend', (era) => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  let session: LegacySession;
  beforeAll(async () => {
    backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)();
    gateway = await startGateway({ '/mcp': backend.url });
    session = await legacy(gateway.url());
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });
  beforeEach(() => backend.on('tools/call', undefined));

  const params = { name: 'echo', arguments: {}, _meta: { progressToken: 'mine' } };
  const open: Record<string, () => Promise<RawStream>> = {
    modern: () => openModern(gateway.url(), 'tools/call', params),
    legacy: () => session.open('tools/call', params),
  };

  test('may leave its stream open after the answer', async () => {
    let closed = 0;
    backend.on('tools/call', (step) => {
      const events = step.stream();
      events.write(`data: ${answerOf(step)}\n\n`);
      step.res.on('close', () => {
        closed += 1;
      });
      return undefined;
    });
    const begun = Date.now();
    for (const call of Object.values(open)) {
      expect((await (await call()).done).json.result.content[0].text).toContain('fine');
    }
    expect(Date.now() - begun).toBeLessThan(1_500);
    await until(() => closed === 2, 'the gateway to end the streams');
  });

  describe.each(Object.keys(open))('toward a %s client', (client) => {
    const call = open[client] as () => Promise<RawStream>;

    test.each(Object.keys(DIALECTS))('is understood at once with %s', async (name) => {
      const dialect = DIALECTS[name] as Dialect;
      let release = (): void => {};
      backend.on('tools/call', (step) => {
        const events = step.stream();
        events.write(dialect(progress(step.params._meta.progressToken)));
        // Not before the client has seen the first event: nothing may wait for the end of the stream.
        release = () => {
          events.write(dialect(answerOf(step)));
        };
        return undefined;
      });
      const stream = await call();
      const first = await stream.next(2_000);
      expect(first.json.params).toEqual({ progressToken: 'mine', progress: 1 });
      release();
      const second = await stream.next(2_000);
      expect(second.json.result.content[0].text).toBe('fine: "ü € 😀"');
      const whole = await stream.done;
      // Toward clients: one data line, the usual name, LF; for those of the handshake era ids of the gateway's own.
      const ofMessages = whole.text.replace(/^(:.*|id: \S+\nretry: \d+\ndata: )\n\n/gm, '');
      expect(ofMessages.replace(/^id: \S+\n/gm, '')).toBe(
        `event: message\ndata: ${first.data}\n\nevent: message\ndata: ${second.data}\n\n`,
      );
      if (client === 'modern') expect(whole.text).not.toMatch(/^(id|retry):/m);
    });

    test('may begin its stream with a byte order mark', async () => {
      backend.on('tools/call', (step) => {
        const events = step.stream();
        events.write(`\ufeff:hi\nretry: 5\nid: 9\ndata:${answerOf(step)}\n\n`);
        return undefined;
      });
      expect((await (await call()).done).json.result.content[0].text).toContain('fine');
    });

    test.each([1, 2, 3, 5, 64])('may cut its stream into pieces of %i bytes', async (size) => {
      backend.on('tools/call', async (step) => {
        const events = step.stream();
        const text = `\r\n: c\r\n${(DIALECTS['several data lines in CRLF'] as Dialect)(answerOf(step))}`;
        const bytes = Buffer.from(text);
        for (let at = 0; at < bytes.length; at += size) {
          events.write(bytes.subarray(at, at + size));
          if (at % 16 === 0) await new Promise(setImmediate);
        }
        return undefined;
      });
      expect((await (await call()).done).json.result.content[0].text).toBe('fine: "ü € 😀"');
    });

    test.each([
      ['with one line end', (json: string) => `data: ${json}\n`],
      ['without any line end', (json: string) => `data: ${json}`],
      ['with CR alone', (json: string) => `data: ${json}\r`],
      [
        'with its lines joined',
        (json: string) =>
          inLines(json)
            .map((line) => `data: ${line}`)
            .join('\n'),
      ],
    ])('may end its stream %s after the last event', async (_how, write) => {
      for (const end of ['end', 'destroy'] as const) {
        backend.on('tools/call', async (step) => {
          const events = step.stream();
          events.write(write(answerOf(step)));
          await sleep(20);
          events[end]();
          return undefined;
        });
        const whole = await (await call()).done;
        expect(whole.json.result.content[0].text, end).toContain('fine');
      }
    });

    test('that ends its stream in the middle of the last event has not answered', async () => {
      for (const end of ['end', 'destroy'] as const) {
        backend.on('tools/call', async (step) => {
          const events = step.stream();
          events.write(`data: ${answerOf(step).slice(0, -2)}`);
          await sleep(20);
          events[end]();
          return undefined;
        });
        const whole = await (await call()).done;
        expect(whole.json.error.code, end).toBe(-32603);
        expect(whole.json.error.message).toMatch(/^The connection to the server behind route .* broke/);
      }
    });

    test('may answer in an event that is as large as results may be', async () => {
      const text = 'x'.repeat(3_000_000);
      backend.on('tools/call', (step) => {
        const events = step.stream();
        events.event(step.frame({ result: { resultType: 'complete', content: [{ type: 'text', text }] } }));
        return undefined;
      });
      expect((await (await call()).done).json.result.content[0].text).toHaveLength(text.length);
    });
  });
});

describe('an event larger than a result may be', () => {
  test('ends the call with an error, and the gateway does not collect it', async () => {
    let written = 0;
    const backend = await startLegacyBackend({
      on: {
        'tools/call': async ({ stream, res }) => {
          const events = stream();
          events.write('data: "');
          const piece = Buffer.alloc(64 * 1024, 0x78);
          while (!res.destroyed && written < 64 * 1024 * 1024) {
            written += piece.length;
            events.write(piece);
            await new Promise(setImmediate);
          }
          return undefined;
        },
      },
    });
    const gateway = await startGateway({ '/mcp': backend.url }, { limits: { result: '1MiB' } });
    try {
      const answer = await modern(gateway.url(), 'tools/call', { name: 'echo' });
      expect(answer.json.error.code).toBe(-32603);
      expect(answer.json.error.message).toMatch(/large/);
      expect(written).toBeLessThan(32 * 1024 * 1024);
    } finally {
      await gateway.close();
      await backend.close();
    }
  });
});

describe('the stream of a session', () => {
  test.each(Object.keys(DIALECTS))('is understood at once with %s', async (name) => {
    const dialect = DIALECTS[name] as Dialect;
    const backend = await startLegacyBackend({ capabilities: { tools: { listChanged: true } } });
    const gateway = await startGateway({ '/mcp': backend.url });
    try {
      const session = await legacy(gateway.url());
      const stream = await session.listen();
      await until(() => backend.streams.length > 0, 'the stream of the session');
      for (const n of [1, 2]) {
        const message = { jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: { fine: n } };
        backend.streams[0]?.stream.write(dialect(JSON.stringify(message)));
        const { json }: { json: Loose } = await stream.next(2_000);
        expect(json).toEqual(message);
      }
      stream.abort();
    } finally {
      await gateway.close();
      await backend.close();
    }
  });
});
