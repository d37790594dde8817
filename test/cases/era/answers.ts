import type { BackendExchange } from '../../support/misbehave.js';
import type { Loose } from '../../support/net.js';

/** Answers one HTTP request. */
export type HttpAnswer = (exchange: BackendExchange) => void;

/** A JSON-RPC error, with an id of the server's own choice: many early refusals have another than the request's. */
export function rpcError(status: number, error: Loose, id: Loose = null): HttpAnswer {
  return ({ sendJson }) => sendJson({ jsonrpc: '2.0', id, error }, status);
}

export function rpcResult(result: Loose): HttpAnswer {
  return ({ sendJson, json }) => sendJson({ jsonrpc: '2.0', id: json.id, result });
}

export function plain(status: number, body = '', headers: Record<string, string> = {}): HttpAnswer {
  return ({ sendText }) => sendText(body, status, headers);
}

/** The refusal of a protocol version, as the modern era has it. */
export function refusedVersion(supported: Loose, status = 400): HttpAnswer {
  const message = 'Unsupported protocol version';
  return rpcError(status, { code: -32022, message, data: { supported, requested: '2026-07-28' } });
}

export const isProbe = ({ json }: BackendExchange) => json?.method === 'server/discover';

/** For `intercept` of a scripted backend: the era probe is answered so, whatever else it would take. */
export function probed(answer: HttpAnswer): (exchange: BackendExchange) => boolean {
  return (exchange) => {
    if (!isProbe(exchange)) return false;
    answer(exchange);
    return true;
  };
}
