import {
  getMember,
  isSameId,
  type NotificationFrame,
  Rope,
  scanJson,
  textOf,
  writeObject,
} from '../jsonrpc/index.js';
import type { ServerMessage } from './channel.js';
import type { Exchange } from './exchange.js';

export const PROGRESS = 'notifications/progress';

/** JSON text of the token of a progress notification. */
export function progressTokenOf({ bytes, params }: NotificationFrame): string | undefined {
  const token = params === undefined ? undefined : getMember(bytes, params, 'progressToken');
  return token?.kind === 'string' || token?.kind === 'number' ? textOf(bytes, token) : undefined;
}

/**
 * A notification on the response stream of a call, as it is for the client: progress under the client's token, in the
 * client's spelling, and anything else unchanged (basic/utilities/progress).
 * @param token JSON text of the token that the backend was sent
 * @returns undefined for progress of something else, or that the client did not request
 */
export function serverMessageFor(
  exchange: Exchange,
  frame: NotificationFrame,
  token: string | undefined,
): ServerMessage | undefined {
  const { method, params, bytes, root } = frame;
  if (method !== PROGRESS) return { method, params, bytes };
  const own = exchange.progressToken;
  const named = progressTokenOf(frame);
  if (own === undefined || token === undefined || named === undefined || !isSameId(token, named)) {
    return undefined;
  }
  if (named === own) return { method, params, bytes };
  const rewritten = new Rope();
  writeObject(rewritten, bytes, params, new Map([['progressToken', own]]));
  const whole = new Rope();
  writeObject(whole, bytes, root, new Map([['params', rewritten]]));
  const text = whole.toBuffer();
  return { method, params: getMember(text, scanJson(text, 2), 'params'), bytes: text };
}
