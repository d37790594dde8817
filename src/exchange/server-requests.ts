import type { Caller } from './caller.js';
import { isRecord } from './utils/is-record.js';

/** Requests during which a server may ask the client (basic/patterns/mrtr, "Supported Requests"). */
export const MAY_ASK: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** Capabilities of a client that let a server ask it things. */
export const ASKING_CAPABILITIES = ['elicitation', 'sampling', 'roots'] as const;

/** Whether a server may ask the caller something while it carries out a request. */
export function mayBeAsked({ neutralCapabilities }: Caller, method: string): boolean {
  return MAY_ASK.has(method) && ASKING_CAPABILITIES.some((name) => isRecord(neutralCapabilities.value[name]));
}
