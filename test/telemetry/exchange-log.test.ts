import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../src/exchange/caller.js';
import { readCapabilities } from '../../src/exchange/client-capabilities.js';
import type { Principal } from '../../src/exchange/credentials.js';
import { EXCHANGE_ERRORS } from '../../src/exchange/errors.js';
import { Exchange } from '../../src/exchange/exchange.js';
import { NO_FORWARDED } from '../../src/exchange/forwarded-headers.js';
import { gatewayError, type Outcome, ownResult } from '../../src/exchange/outcome.js';
import { type RequestId, scanJson } from '../../src/jsonrpc/index.js';
import { ExchangeLog } from '../../src/telemetry/exchange-log.js';

const NO_CAPABILITIES = readCapabilities('{}');
const CALLER: Caller = {
  era: 'modern',
  revision: '2026-07-28',
  principal: 'anonymous' as Principal,
  clientInfo: undefined,
  capabilities: NO_CAPABILITIES,
  neutralCapabilities: NO_CAPABILITIES,
  logLevel: undefined,
  forwarded: NO_FORWARDED,
  session: undefined,
};

function exchangeOf(method: string, name: string | undefined): Exchange {
  const bytes = Buffer.from('{"arguments":{"secret":"s3cret"}}');
  return new Exchange(
    {
      id: '1' as RequestId,
      method,
      params: { bytes, node: scanJson(bytes, 2), meta: undefined, envelopeKeys: [] },
      name,
      progressToken: undefined,
      resumes: false,
      raw: undefined,
      paramHeaders: [],
    },
    CALLER,
    {
      notify: () => true,
      onDrain: (resume) => resume(),
      ask: () => Promise.reject(new Error('not asked here')),
    },
  );
}

function result(text: string): Outcome {
  const bytes = Buffer.from(text);
  return ownResult(bytes, scanJson(bytes, 2));
}

/** The lines that one exchange writes, parsed. */
function logged(exchange: Exchange, status: number, outcome: Outcome, level = 'info') {
  const lines: string[] = [];
  const log = pino({ level, base: null }, { write: (line: string) => void lines.push(line) });
  new ExchangeLog(log, '/mcp').record(exchange, status, outcome);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('the line of an exchange', () => {
  test('has the request, the cell, the outcome and the times, and nothing of the content', () => {
    const exchange = exchangeOf('tools/call', 'echo "é"');
    exchange.notes.backendEra = 'legacy';
    exchange.notes.backendMs = 1.239;
    exchange.notes.session = 'shared';
    const [line] = logged(exchange, 200, result('{"content":[]}'));
    expect(line).toMatchObject({
      level: 30,
      route: '/mcp',
      cell: 'ML',
      method: 'tools/call',
      name: 'echo "é"',
      status: 200,
      outcome: 'ok',
      backendMs: 1.24,
      session: 'shared',
    });
    expect(line).not.toHaveProperty('cache');
    expect(line).not.toHaveProperty('error');
    expect(line?.['ms']).toBeGreaterThanOrEqual(0);
    expect(JSON.stringify(line)).not.toContain('s3cret');
  });

  test('has no backend era where no backend was reached, and the name of an error of the gateway', () => {
    const error = gatewayError(EXCHANGE_ERRORS.ERAGATE_QUOTA, { limit: 1, what: 'tasks' });
    const [line] = logged(exchangeOf('tools/list', undefined), 503, error);
    expect(line).toMatchObject({ level: 40, cell: 'M-', outcome: -32603, error: 'ERAGATE_QUOTA' });
    expect(line).not.toHaveProperty('name');
    expect(line).not.toHaveProperty('detail');
  });

  test('is a warning with what the client does not see of a failing backend', () => {
    const detail = 'http://10.0.0.1:3001 answered HTTP 500: <html>';
    const error = gatewayError(EXCHANGE_ERRORS.ERAGATE_HOST_REFUSED, { route: '/mcp' }, { detail });
    for (const level of ['info', 'warn']) {
      const [line] = logged(exchangeOf('tools/list', undefined), 502, error, level);
      expect(line).toMatchObject({ level: 40, error: 'ERAGATE_HOST_REFUSED', detail });
      expect(line).toHaveProperty('hint');
    }
  });

  test.each([
    ['isError', '{"content":[],"isError":true}', () => {}],
    ['cancelled', '{}', (exchange: Exchange) => exchange.cancel('the client cancelled')],
    [
      'timeout',
      '{}',
      (exchange: Exchange) => {
        exchange.limit(0);
        exchange.tick(performance.now() + 1);
      },
    ],
  ])('says how the exchange ended: %s', (word, text, end) => {
    const exchange = exchangeOf('tools/call', 'echo');
    end(exchange);
    expect(logged(exchange, 200, result(text))).toMatchObject([{ outcome: word }]);
  });

  test('does not name a task, since the name gives access to it', () => {
    const [line] = logged(exchangeOf('tasks/get', 'sealed-task-name'), 200, result('{}'));
    expect(line).not.toHaveProperty('name');
  });

  test('is not written above level info', () => {
    expect(logged(exchangeOf('ping', undefined), 200, result('{}'), 'warn')).toEqual([]);
  });
});
