import { badGateway, CODE, ExchangeError } from './errors.js';
import { type BackendErrorOutcome, ownError } from './outcome.js';

type RefusalHeaders = Record<string, string | string[] | undefined>;

const PASSED_ON = ['www-authenticate', 'retry-after'] as const;

/** Statuses on which the client can act: with other credentials, with other scopes, later. */
const FOR_THE_CLIENT: ReadonlySet<number> = new Set([401, 403, 429]);

/** Whether the server rejects the `Host` header: the Python SDK with 421, the Go and Rust SDKs with 403. */
function refusesHost(status: number, text: string): boolean {
  return status === 421 || (status === 403 && /\bhost\b/i.test(text));
}

/**
 * The error for the client if the backend challenges or throttles it, with the headers that it needs; undefined for
 * other statuses. A rejected `Host` is an error of the gateway, since no client can act on it.
 * @param text of the backend's response
 * @param error of the backend, if it responded in JSON-RPC
 */
export function refusalForClient(
  status: number,
  headers: RefusalHeaders,
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
