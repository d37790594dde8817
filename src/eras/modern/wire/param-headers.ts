import { type JsonNode, membersNamed, stringOf, textOf } from '../../../jsonrpc/index.js';
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
  const nodes = valuesOf(bytes, args, headers);
  for (const [index, { header, path }] of headers.entries()) {
    const node = nodes[index];
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
  const nodes = valuesOf(bytes, args, headers);
  for (const [index, { header, path }] of headers.entries()) {
    const node = nodes[index];
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

/** The argument of each header, in one pass over the arguments and one over each object that holds some. */
function valuesOf(
  bytes: Buffer,
  args: JsonNode | undefined,
  headers: readonly ParamHeader[],
): (JsonNode | undefined)[] {
  const found = new Array<JsonNode | undefined>(headers.length).fill(undefined);
  const descend = (node: JsonNode, wanted: readonly number[], depth: number): void => {
    const byName = new Map<string, number[]>();
    for (const index of wanted) {
      const path = headers[index]?.path ?? [];
      const name = path[depth];
      if (name === undefined) found[index] = node;
      else byName.set(name, [...(byName.get(name) ?? []), index]);
    }
    if (byName.size === 0) return;
    const values = new Map(membersNamed(bytes, node, byName.keys()).map(({ key, value }) => [key, value]));
    for (const [name, value] of values) descend(value, byName.get(name) ?? [], depth + 1);
  };
  if (args !== undefined) descend(args, [...headers.keys()], 0);
  return found;
}
