import type { BackendLabel } from './backend-label.js';
import { EXCHANGE_ERRORS, ExchangeError, exchangeError } from './errors.js';
import type { BackendErrorOutcome } from './outcome.js';

type RefusalHeaders = Record<string, string | string[] | undefined>;

/** An HTTP response of a backend that is no result. */
export interface RefusedResponse {
  readonly status: number;
  readonly headers: RefusalHeaders;
  /** The message of its JSON-RPC error, or the text of its body. */
  readonly text: string;
  /** The error, if it is JSON-RPC and meant for the client. */
  readonly error?: BackendErrorOutcome | undefined;
}

const PASSED_ON = ['www-authenticate', 'retry-after'] as const;

/** HTTP statuses of a backend that are meant for the client: its credential, its rights, its rate. */
const FOR_THE_CLIENT = new Map([
  [401, EXCHANGE_ERRORS.ERAGATE_UNAUTHORIZED],
  [403, EXCHANGE_ERRORS.ERAGATE_FORBIDDEN],
  [429, EXCHANGE_ERRORS.ERAGATE_RATE_LIMITED],
]);

/** How servers refuse the `Host` of a request: Python's with 421, Go's and Rust's with 403. */
function refusesHost(status: number, text: string): boolean {
  return status === 421 || (status === 403 && /\bhost\b/i.test(text));
}

/**
 * The backend's challenge or rate limit as the client's error, with the headers that the client acts on; undefined for
 * other statuses. No client can act on a refused `Host`, which is a fault of the configuration.
 */
export function refusalForClient(
  { route, name }: BackendLabel,
  { status, headers, text, error }: RefusedResponse,
): ExchangeError | undefined {
  const said = text.trim().slice(0, 200);
  const detail = `${name} answered HTTP ${status}${said === '' ? '' : `: ${said}`}`;
  if (refusesHost(status, said))
    return exchangeError(EXCHANGE_ERRORS.ERAGATE_HOST_REFUSED, { route }, { detail });
  const declared = FOR_THE_CLIENT.get(status);
  if (declared === undefined) return undefined;
  const passed: Record<string, string> = {};
  for (const header of PASSED_ON) {
    const value = headers[header];
    if (value !== undefined) passed[header] = Array.isArray(value) ? value.join(', ') : value;
  }
  if (error !== undefined) return new ExchangeError({ ...error, origin: 'refusal', status, headers: passed });
  return exchangeError(declared, { route }, { headers: passed, detail });
}
