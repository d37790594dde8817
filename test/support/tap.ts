import { request as httpRequest } from 'node:http';
import {
  type ExchangeView,
  type Party,
  parseJson,
  type Session,
  type TappedExchange,
  type TappedFrame,
  viewAnswer,
  viewRequest,
} from './exchange-view.js';
import { listen } from './net.js';
import { type Direction, problemsOf } from './schema.js';

export type { Party, TappedExchange, TappedFrame };

/** What all taps of one test have seen. */
export interface Recording {
  readonly frames: TappedFrame[];
  readonly exchanges: TappedExchange[];
  /** Faults of the parties under watch, each a line; empty is good. */
  readonly violations: string[];
}

export interface Tap {
  /** Takes the place of the target's URL. */
  readonly url: string;
  close(): Promise<void>;
}

/** Begins a recording. `watch` says whose frames must be right (default: the gateway's alone). */
export function record(watch: readonly Party[] = ['gateway']) {
  const recording: Recording = { frames: [], exchanges: [], violations: [] };
  return {
    ...recording,
    /** Sits between a client and the gateway. */
    client: (target: string) => startTap(target, 'client', recording, new Set(watch)),
    /** Sits between the gateway and a backend. */
    backend: (target: string) => startTap(target, 'backend', recording, new Set(watch)),
  };
}

/**
 * A reverse proxy that passes bytes on as they come, in both directions, and hands each JSON-RPC frame to the
 * validator. `Host` is the one header that it changes, to the target's own.
 */
async function startTap(
  target: string,
  side: 'client' | 'backend',
  recording: Recording,
  watch: ReadonlySet<Party>,
): Promise<Tap> {
  const destination = new URL(target);
  const sessions = new Map<string, Session>();
  const byParty: Record<Direction, Party> =
    side === 'client' ? { c2s: 'client', s2c: 'gateway' } : { c2s: 'gateway', s2c: 'backend' };

  function see(frame: Omit<TappedFrame, 'by'>) {
    const by = byParty[frame.direction];
    recording.frames.push({ by, ...frame });
    if (watch.has(by)) recording.violations.push(...problemsOf(frame).map((problem) => `${by}: ${problem}`));
  }
  function complain(direction: Direction, problem: string) {
    const by = byParty[direction];
    if (watch.has(by)) recording.violations.push(`${by}: ${problem}`);
  }

  const host = await listen((request, response) => {
    const requestChunks: Buffer[] = [];
    let exchange: TappedExchange | undefined;
    let view: ExchangeView | undefined;
    const upstream = httpRequest({
      host: destination.hostname,
      port: destination.port,
      method: request.method,
      path: request.url,
      agent: false,
      headers: withHost(request.rawHeaders, destination.host),
    });
    const giveUp = () => response.destroy();
    upstream.on('error', giveUp);
    request.on('data', (chunk: Buffer) => {
      requestChunks.push(chunk);
      upstream.write(chunk);
    });
    request.on('end', () => {
      exchange = {
        side,
        method: request.method ?? '',
        headers: request.headers,
        body: parseJson(Buffer.concat(requestChunks).toString('utf8')),
        status: 0,
        responseHeaders: {},
      };
      recording.exchanges.push(exchange);
      view = viewRequest(exchange, host.origin, sessions, see, (problem) => complain('c2s', problem));
      upstream.end();
    });
    response.on('close', () => upstream.destroy());
    upstream.on('response', (answer) => {
      if (exchange) {
        exchange.status = answer.statusCode ?? 0;
        exchange.responseHeaders = answer.headers;
      }
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      response.flushHeaders();
      const reader = view && exchange ? viewAnswer(exchange, view, sessions, see, complain) : undefined;
      answer.on('data', (chunk: Buffer) => {
        response.write(chunk);
        reader?.data(chunk);
      });
      answer.on('end', () => {
        reader?.end();
        response.end();
      });
      answer.on('error', giveUp);
      answer.on('aborted', giveUp);
    });
  });
  return { url: `${host.origin}${destination.pathname}`, close: () => host.stop() };
}

function withHost(rawHeaders: string[], host: string): string[] {
  return rawHeaders.map((value, index) =>
    index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'host' ? host : value,
  );
}
