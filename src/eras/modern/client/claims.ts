import type { HttpCall } from '../../../downstream/http-call.js';
import { type Batch, type Frame, FrameError, getMember } from '../../../jsonrpc/index.js';
import { META, MODERN_VERSION } from '../wire/names.js';

/**
 * Whether the body of a POST is of this era: by its `_meta`, by the version header, or as `server/discover`. A request that
 * has only the header is invalid in this era, and gets the error that says so.
 */
export function claimsBody(call: HttpCall, body: Frame | Batch): boolean {
  if (body.type === 'batch')
    return (
      body.items.some((item) => !(item instanceof FrameError) && hasVersion(item)) || claimsHeaders(call)
    );
  return (
    claimsHeaders(call) || hasVersion(body) || (body.type === 'request' && body.method === 'server/discover')
  );
}

/** Whether the version header names this era or a newer one. Dates of this form have the same order as texts. */
export function claimsHeaders({ headers: { protocolVersion } }: HttpCall): boolean {
  if (protocolVersion === MODERN_VERSION) return true;
  return (
    protocolVersion !== undefined &&
    /^\d{4}-\d\d-\d\d/.test(protocolVersion) &&
    protocolVersion >= MODERN_VERSION
  );
}

/** Whether the `_meta` of a message has the protocol version, which only this era puts there. */
function hasVersion(frame: Frame): boolean {
  if (frame.type !== 'request' && frame.type !== 'notification') return false;
  const { bytes, params } = frame;
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  return meta !== undefined && getMember(bytes, meta, META.protocolVersion) !== undefined;
}
