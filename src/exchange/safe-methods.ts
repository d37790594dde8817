/**
 * Requests that change nothing at a server, or change the same thing when they come twice: one whose connection died
 * before a byte of an answer came may be sent again, though the server may have read it. A tool may have done its work.
 */
const SAFE_METHODS: ReadonlySet<string> = new Set([
  'completion/complete',
  'initialize',
  'logging/setLevel',
  'ping',
  'prompts/get',
  'prompts/list',
  'resources/list',
  'resources/read',
  'resources/subscribe',
  'resources/templates/list',
  'resources/unsubscribe',
  'server/discover',
  'subscriptions/listen',
  'tasks/cancel',
  'tasks/get',
  'tasks/list',
  'tools/list',
]);

/** Notifications are safe too: none of them does anything that a second one would undo or do again. */
export function isSafe(method: string): boolean {
  return SAFE_METHODS.has(method) || method.startsWith('notifications/');
}
