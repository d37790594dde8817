import type { Caller } from './caller.js';
import { isRecord } from './utils/is-record.js';

/** Requests during which a server may send requests (basic/patterns/mrtr, "Supported Requests"). */
export const MAY_ASK: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** Capabilities of a client that allow server requests. */
export const ASKING_CAPABILITIES = ['elicitation', 'sampling', 'roots'] as const;

/** Whether a server may send requests to the caller while it carries out this one. */
export function mayBeAsked({ neutralCapabilities }: Caller, method: string): boolean {
  return MAY_ASK.has(method) && ASKING_CAPABILITIES.some((name) => isRecord(neutralCapabilities.value[name]));
}
