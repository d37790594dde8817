import { type Frame, FrameError, parseLenientFrames, toValidUtf8 } from '../jsonrpc/index.js';

/**
 * Parses the messages in one body or event from a backend.
 * @param reportDeviation see {@link Transport.reportDeviation}
 * @returns undefined for what is not JSON-RPC
 */
export function readFrames(
  raw: Buffer,
  reportDeviation: (what: string) => void,
): readonly Frame[] | undefined {
  const { bytes, replaced } = toValidUtf8(raw);
  if (replaced) reportDeviation(INVALID_UTF8);
  try {
    return parseLenientFrames(bytes);
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    reportDeviation(`sends what is no JSON-RPC message: ${error.message}`);
    return undefined;
  }
}

export const INVALID_UTF8 = 'sends bytes that are not valid UTF-8';
