import type { ClientResponse } from '../../../downstream/response.js';
import { CODE } from '../../../exchange/errors.js';
import type { ErrorFields } from '../../../exchange/outcome.js';
import { errorRope, type RequestId } from '../../../jsonrpc/index.js';
import { MODERN_CODE } from '../wire/names.js';

/** An error for an invalid request, with the HTTP status that the specification sets. */
export type Refusal = ErrorFields & { readonly status: number };

export function refusal(code: number, message: string, data?: unknown): Refusal {
  const text = data === undefined ? undefined : JSON.stringify(data);
  return { code, message, data: text, status: code === CODE.methodNotFound ? 404 : 400 };
}

/** A header contradicts the body, or is missing. */
export function headerMismatch(what: string): Refusal {
  return refusal(MODERN_CODE.headerMismatch, `Header mismatch: ${what}`);
}

export function writeRefusal(response: ClientResponse, id: RequestId, fields: ErrorFields): void {
  const { status = 502, code, message, data, headers } = fields;
  response.end(status, errorRope(id, code, message, data), headers);
}
