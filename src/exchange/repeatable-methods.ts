/**
 * Requests that have the same effect when they are carried out twice. They are repeated when the connection is lost
 * before the first byte of a response, although the server may have read them. Calls of tools are not.
 */
const REPEATABLE_METHODS: ReadonlySet<string> = new Set([
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

/** Whether a message may reach a server twice. A second notification changes nothing. */
export function isRepeatable(method: string): boolean {
  return REPEATABLE_METHODS.has(method) || method.startsWith('notifications/');
}
