import { getMember, type JsonNode, stringOf, textOf } from '../../../jsonrpc/index.js';
import type { ParamHeader } from './header-annotations.js';
import { decodeHeaderValue, encodeHeaderValue } from './header-values.js';

/** An argument cannot be sent as a header. */
export class UnsendableArgument extends Error {}

/**
 * The headers for a call, as alternating names and values; missing and null arguments have none.
 * @param args the `arguments` of the call
 * @throws UnsendableArgument
 */
export function paramHeaderValues(
  bytes: Buffer,
  args: JsonNode | undefined,
  headers: readonly ParamHeader[],
): string[] {
  const values: string[] = [];
  for (const { header, path } of headers) {
    let node = args;
    for (const key of path) node = node === undefined ? undefined : getMember(bytes, node, key);
    const value = node === undefined ? undefined : headerText(bytes, node, path);
    if (value !== undefined) values.push(header, encodeHeaderValue(value));
  }
  return values;
}

function headerText(bytes: Buffer, node: JsonNode, path: readonly string[]): string | undefined {
  if (node.kind === 'string') return stringOf(bytes, node);
  if (node.kind === 'true' || node.kind === 'false') return node.kind;
  if (node.kind !== 'number') return undefined;
  const number = Number(textOf(bytes, node));
  if (!Number.isSafeInteger(number)) {
    throw new UnsendableArgument(
      `argument ${path.join('.')} is ${textOf(bytes, node)}: its header takes integers from -(2^53-1) to 2^53-1 only`,
    );
  }
  return String(number);
}

/**
 * Compares the headers of a call with its arguments (basic/transports, "Server Behavior for Custom Headers").
 * @param args the `arguments` of the call
 * @param received alternating names, in lower case, and values
 * @returns the difference; undefined if there is none
 */
export function paramHeaderProblem(
  bytes: Buffer,
  args: JsonNode | undefined,
  headers: readonly ParamHeader[],
  received: readonly string[],
): string | undefined {
  for (const { header, path } of headers) {
    let node = args;
    for (const key of path) node = node === undefined ? undefined : getMember(bytes, node, key);
    const at = received.findIndex((name, i) => i % 2 === 0 && name === header);
    const value = at === -1 ? undefined : received[at + 1];
    const where = path.join('.');
    if (node === undefined || !SENT_KINDS.has(node.kind)) {
      if (value !== undefined) return `${header} is sent, but the argument ${where} has no value for it`;
    } else if (value === undefined) return `${header} is missing, but the argument ${where} has a value`;
    else if (!isEqual(value, bytes, node)) return `${header} is not the argument ${where}`;
  }
  return undefined;
}

/** Kinds of arguments that have a header. */
const SENT_KINDS: ReadonlySet<string> = new Set(['string', 'number', 'true', 'false']);

/** Whether a header has the value of an argument; numbers are compared by value. */
function isEqual(header: string, bytes: Buffer, node: JsonNode): boolean {
  const text = decodeHeaderValue(header);
  if (text === undefined) return false;
  if (node.kind === 'string') return stringOf(bytes, node) === text;
  if (node.kind !== 'number') return node.kind === text;
  const number = textOf(bytes, node);
  return text === number || (text.trim() !== '' && Number(text) === Number(number));
}
