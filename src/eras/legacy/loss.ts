import type { RpcReply } from '../../transports/rpc-call.js';

/** One way in which a backend says that it does not know the session. */
interface LossRule {
  readonly status: number;
  /** Matched against the JSON-RPC error message, or the text of the body. */
  readonly message: RegExp;
}

const ANY = /^/;
const SESSION = /session|not initialized|mcp-session-id/i;
const SESSION_GONE =
  /session\b.*(not found|expired|terminated|invalid|unknown|closed)|(invalid|unknown|expired|no valid) session/i;

/**
 * How the servers in use tell of a lost session. The specification has 404 only; the other rows are each some
 * server's habit.
 */
const LOSS_RULES: readonly LossRule[] = [
  { status: 404, message: ANY },
  // Every server that was copied from the SDK's example, server-everything among them.
  { status: 400, message: SESSION },
  { status: 409, message: SESSION },
  { status: 410, message: ANY },
  // rmcp
  { status: 422, message: ANY },
  { status: 500, message: SESSION_GONE },
  { status: 503, message: SESSION_GONE },
  { status: 200, message: SESSION_GONE },
];

/** JSON-RPC codes that can stand for a lost session; others at these statuses speak of the request itself. */
const LOSS_CODES: ReadonlySet<number> = new Set([-32000, -32001, -32002, -32600, -32603, 0]);

/**
 * Whether a reply to a request that carried a session id says that the session is gone. All of these are refusals
 * before the request was carried out, so it may be sent again on a new session.
 */
export function saysSessionLost(reply: RpcReply): boolean {
  if (reply.kind === 'failed') return false;
  const { status } = reply;
  if (reply.kind === 'no-answer') {
    return (
      status >= 400 && LOSS_RULES.some((rule) => rule.status === status && rule.message.test(reply.text))
    );
  }
  const { frame } = reply;
  if (frame.type !== 'error' || !LOSS_CODES.has(frame.code)) return false;
  return LOSS_RULES.some((rule) => rule.status === status && rule.message.test(frame.message));
}
