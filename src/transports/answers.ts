import { elementsOf, type Frame, parseAnswer, scanJson } from '../jsonrpc/index.js';

const BRACKET = 0x5b;
const WHITE_SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * The messages in one JSON body or one event: servers of 2025-03-26 may send several as an array.
 * @throws FrameError
 */
export function parseAnswers(bytes: Buffer): Frame[] {
  let first = 0;
  while (WHITE_SPACE.has(bytes[first] as number)) first++;
  if (bytes[first] !== BRACKET) return [parseAnswer(bytes)];
  return elementsOf(bytes, scanJson(bytes, 1)).map(({ start, end }) => parseAnswer(bytes, start, end));
}
