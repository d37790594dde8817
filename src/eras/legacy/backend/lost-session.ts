import { type ErrorFrame, textOf } from '../../../jsonrpc/index.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import type { ConfiguredLoss } from '../../era.js';

/** One way in which servers say that they do not know the session. */
interface LossRule {
  readonly status: number;
  /** Matched against the message of the JSON-RPC error, or the text of the body. */
  readonly message: RegExp;
}

const ANY = /^/;
const SESSION = /session|not initialized|mcp-session-id/i;
const SESSION_GONE =
  /\bsession\b.*(not (be )?found|not valid|expired|terminated|invalid|unknown|closed|lost|(does not|doesn't) exist|no longer)|(invalid|unknown|expired|no valid|no such|missing) (mcp[ -])?session/i;
/** A message that says so and nothing else: at 200 any tool may speak of a session of its own. */
const SESSION_GONE_ALONE =
  /^(\w+( \w+)?: )?(the )?(mcp[ -])?session( id)?( is| was| has| has been| could)?( not( be)? found| not valid| expired| terminated| invalid| unknown| closed| does not exist| no longer valid)\W*$|^(\w+( \w+)?: )?(no valid|no such|invalid|unknown|expired|invalid or (expired|missing|unknown)) (mcp[ -])?session( id)?( provided)?\W*$/i;

/**
 * How the servers in use tell of a lost session. The specification has 404 only (basic/transports, "Session
 * Management"); the other rows are each some server's habit.
 */
const KNOWN_RULES: readonly LossRule[] = [
  { status: 404, message: ANY },
  // Where there was an endpoint there is none for POST any more: the server makes way for one of another transport.
  { status: 405, message: ANY },
  // Every server that was copied from the SDK's example, server-everything among them.
  { status: 400, message: SESSION },
  { status: 409, message: ANY },
  { status: 410, message: ANY },
  // rmcp
  { status: 422, message: ANY },
  { status: 500, message: SESSION_GONE },
  { status: 503, message: SESSION_GONE },
  { status: 200, message: SESSION_GONE_ALONE },
];

/** JSON-RPC codes that speak of the request itself, unless the message is of the session without a doubt. */
const ABOUT_THE_REQUEST: ReadonlySet<number> = new Set([-32700, -32601, -32602, -32002, -32042]);

/** Statuses by which servers refuse what comes without a session. */
const WANTS_SESSION: ReadonlySet<number> = new Set([400, 404, 422]);

/** As much of a message, its data or a body as is looked at: the patterns take their time with long ones. */
const MAX_CHARS = 500;

/** Tells a lost session from all other refusals. */
export class LossTable {
  readonly #configured: readonly ConfiguredLoss[];
  readonly #statusAlone: boolean;

  /**
   * @param configured answers that mean it on this route, beside those that are known to
   * @param statusAlone the transport knows of every loss, and tells it by the status 404
   */
  constructor(configured: readonly ConfiguredLoss[] = [], statusAlone = false) {
    this.#configured = configured;
    this.#statusAlone = statusAlone;
  }

  /**
   * Whether a reply to a request that carried this session id says that the session is gone; to one that carried none,
   * that the server has sessions by now. All of these are refusals before the request was carried out, so it may be
   * sent again on a new session.
   */
  saysLost(reply: RpcReply, sessionId: string | undefined): boolean {
    if (reply.kind === 'failed') return false;
    const { status } = reply;
    if (this.#statusAlone) return status === 404;
    if (sessionId === undefined)
      return status === 405 || (WANTS_SESSION.has(status) && SESSION.test(textOfRefusal(reply)));
    if (reply.kind === 'no-response') {
      const text = reply.text.slice(0, MAX_CHARS);
      return status >= 400 && (isKnown(status, text) || this.#isConfigured(status, text));
    }
    const { frame } = reply;
    if (frame.type !== 'error') return false;
    const { code } = frame;
    const message = frame.message.slice(0, MAX_CHARS);
    const said = `${message} ${detailsOf(frame)}`;
    if (this.#isConfigured(status, said)) return true;
    if (status < 400) {
      if (ABOUT_THE_REQUEST.has(code)) return false;
      return isKnown(status, message) || (message.includes(sessionId) && SESSION_GONE.test(message));
    }
    if (ABOUT_THE_REQUEST.has(code) && !SESSION_GONE.test(message)) return false;
    // Some frameworks call every fault of a handler an internal error, and say in the data which.
    return isKnown(status, status >= 500 ? said : message);
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

function detailsOf({ bytes, data }: ErrorFrame): string {
  return data === undefined ? '' : textOf(bytes, data).slice(0, MAX_CHARS);
}
