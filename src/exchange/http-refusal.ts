import { badGateway, CODE, ExchangeError } from './errors.js';
import { type BackendErrorOutcome, ownError } from './outcome.js';

type ResponseHeaders = Record<string, string | string[] | undefined>;

const PASSED_ON = ['www-authenticate', 'retry-after'] as const;

/** HTTP statuses of a backend that speak to the client itself: who it is, what it may do, how fast it may ask. */
const FOR_THE_CLIENT: ReadonlySet<number> = new Set([401, 403, 429]);

/** How servers refuse the `Host` of a request: Python's with 421, Go's and Rust's with 403. */
function refusesHost(status: number, text: string): boolean {
  return status === 421 || (status === 403 && /\bhost\b/i.test(text));
}

/**
 * The backend's challenge or throttling as the client's error, with the headers that it needs to act on it; undefined
 * for other statuses. That the backend wants to be called by another name is nothing that a client could act on.
 * @param text the backend's words
 * @param error its error, where it answered in JSON-RPC
 */
export function refusalForClient(
  status: number,
  headers: ResponseHeaders,
  text: string,
  error?: BackendErrorOutcome,
): ExchangeError | undefined {
  const said = text.trim().slice(0, 200);
  if (refusesHost(status, said)) {
    return badGateway(
      `the backend refuses the Host that it is asked by; set backend.hostHeader to one that it accepts (HTTP ${status}${said === '' ? '' : `: ${said}`})`,
    );
  }
  if (!FOR_THE_CLIENT.has(status)) return undefined;
  const passed: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = headers[name];
    if (value !== undefined) passed[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  if (error !== undefined) return new ExchangeError({ ...error, origin: 'refusal', status, headers: passed });
  return new ExchangeError(
    ownError({
      code: CODE.server,
      message: said === '' ? `the backend answered HTTP ${status}` : said,
      status,
      headers: passed,
    }),
  );
}
