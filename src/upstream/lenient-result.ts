import { type ErrorFrame, type ResultFrame, scanJson, textOf } from '../jsonrpc/index.js';

/** JSON-RPC code of an internal error of the server. */
const INTERNAL = -32603;
const EMPTY = Buffer.from('{}');
const EMPTY_OBJECT = scanJson(EMPTY, 1);

/**
 * Makes the result of a response an object, as MCP requires (basic, "Responses"). Some servers write null for an empty
 * result. Anything else no client could read, so it becomes an error.
 */
export function lenientResult(frame: ResultFrame): ResultFrame | ErrorFrame {
  const { id, bytes, root, result } = frame;
  if (result.kind === 'object') return frame;
  if (result.kind === 'null') {
    return { type: 'result', id, bytes: EMPTY, root: EMPTY_OBJECT, result: EMPTY_OBJECT };
  }
  const message = `the backend answered with a result that is no object: ${textOf(bytes, result).slice(0, 100)}`;
  return { type: 'error', id, bytes, root, error: result, code: INTERNAL, message, data: undefined };
}
