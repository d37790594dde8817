import { CODE } from '../../../exchange/errors.js';
import { type ErrorFrame, textOf } from '../../../jsonrpc/index.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import type { ConfiguredLoss } from '../../era.js';
import { LEGACY_CODE } from '../wire/errors.js';

/** A response that means that the server does not know the session. */
interface LostSessionRule {
  readonly status: number;
  /** Matched against the message of the JSON-RPC error, or the text of the body. */
  readonly message: RegExp;
}

const ANY = /^/;
const SESSION = /session|not initialized|mcp-session-id/i;
const SESSION_GONE =
  /\bsession\b.*(not (be )?found|not valid|expired|terminated|invalid|unknown|closed|lost|(does not|doesn't) exist|no longer)|(invalid|unknown|expired|no valid|no such|missing) (mcp[ -])?session/i;
/** A message that says this and nothing else: with status 200 a tool may report about a session of its own. */
const SESSION_GONE_ALONE =
  /^(\w+( \w+)?: )?(the )?(mcp[ -])?session( id)?( is| was| has| has been| could)?( not( be)? found| not valid| expired| terminated| invalid| unknown| closed| does not exist| no longer valid)\W*$|^(\w+( \w+)?: )?(no valid|no such|invalid|unknown|expired|invalid or (expired|missing|unknown)) (mcp[ -])?session( id)?( provided)?\W*$/i;

/** The responses of known servers. The specification has 404 only (basic/transports, "Session Management"). */
const KNOWN_RULES: readonly LostSessionRule[] = [
  { status: 404, message: ANY },
  // Servers that were replaced by one of another transport, whose endpoint takes no POST.
  { status: 405, message: ANY },
  // server-everything and other servers that follow the example of the TypeScript SDK.
  { status: 400, message: SESSION },
  { status: 409, message: ANY },
  { status: 410, message: ANY },
  // Servers of the Rust SDK (rmcp).
  { status: 422, message: ANY },
  { status: 500, message: SESSION_GONE },
  { status: 503, message: SESSION_GONE },
  { status: 200, message: SESSION_GONE_ALONE },
];

/** JSON-RPC codes that are about the request itself, unless the message is clearly about the session. */
const ABOUT_THE_REQUEST: ReadonlySet<number> = new Set([
  CODE.parse,
  CODE.methodNotFound,
  CODE.invalidParams,
  LEGACY_CODE.resourceNotFound,
  LEGACY_CODE.urlElicitationRequired,
]);

/** Statuses with which servers refuse requests without a session. */
const SESSION_REQUIRED: ReadonlySet<number> = new Set([400, 404, 422]);

/** Limit of the characters that are searched: the patterns are slow on long texts. */
const MAX_CHARS = 500;

/** Tells replies that mean a lost session from all other refusals. */
export class LostSessionRules {
  readonly #configured: readonly ConfiguredLoss[];
  readonly #statusAlone: boolean;

  /**
   * @param configured further responses that mean a lost session on this route
   * @param statusAlone the transport itself reports each lost session, by the status 404
   */
  constructor(configured: readonly ConfiguredLoss[] = [], statusAlone = false) {
    this.#configured = configured;
    this.#statusAlone = statusAlone;
  }

  /**
   * Whether a reply means that the session is lost, or, to a request without a session id, that the server requires one.
   * Such a request was refused before it was carried out, so it may be sent again on a new session.
   */
  isLost(reply: RpcReply, sessionId: string | undefined): boolean {
    if (reply.kind === 'failed') return false;
    const { status } = reply;
    if (this.#statusAlone) return status === 404;
    if (sessionId === undefined)
      return status === 405 || (SESSION_REQUIRED.has(status) && SESSION.test(textOfRefusal(reply)));
    if (reply.kind === 'no-response') {
      const text = reply.text.slice(0, MAX_CHARS);
      return status >= 400 && (isKnown(status, text) || this.#isConfigured(status, text));
    }
    const { frame } = reply;
    if (frame.type !== 'error') return false;
    const { code } = frame;
    const message = frame.message.slice(0, MAX_CHARS);
    const withData = `${message} ${dataOf(frame)}`;
    if (this.#isConfigured(status, withData)) return true;
    if (status < 400) {
      if (ABOUT_THE_REQUEST.has(code)) return false;
      return isKnown(status, message) || (message.includes(sessionId) && SESSION_GONE.test(message));
    }
    if (ABOUT_THE_REQUEST.has(code) && !SESSION_GONE.test(message)) return false;
    // Some frameworks report every fault of a handler as an internal error, with the cause in the data.
    return isKnown(status, status >= 500 ? withData : message);
  }

  /**
   * Whether such a reply proves it by itself: HTTP refused the request before a tool saw it, or the operator named the reply.
   * Errors at 200 and 5xx may be those of a tool that ran.
   */
  proves(reply: RpcReply): boolean {
    if (reply.kind === 'failed') return false;
    if (reply.status >= 400 && reply.status < 500) return true;
    const text =
      reply.kind === 'no-response'
        ? reply.text.slice(0, MAX_CHARS)
        : reply.frame.type === 'error'
          ? `${reply.frame.message.slice(0, MAX_CHARS)} ${dataOf(reply.frame)}`
          : '';
    return this.#isConfigured(reply.status, text);
  }

  #isConfigured(status: number, text: string): boolean {
    return this.#configured.some(
      (rule) => rule.status === status && text.toLowerCase().includes(rule.message?.toLowerCase() ?? ''),
    );
  }
}

function isKnown(status: number, text: string): boolean {
  return KNOWN_RULES.some((rule) => rule.status === status && rule.message.test(text));
}

function textOfRefusal(reply: Exclude<RpcReply, { kind: 'failed' }>): string {
  if (reply.kind === 'no-response') return reply.text;
  const { frame } = reply;
  return frame.type === 'result' || ABOUT_THE_REQUEST.has(frame.code) ? '' : frame.message;
}

function dataOf({ bytes, data }: ErrorFrame): string {
  return data === undefined ? '' : textOf(bytes, data).slice(0, MAX_CHARS);
}
