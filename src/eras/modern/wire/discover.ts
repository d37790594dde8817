import { META, MODERN_VERSION } from './names.js';

/** `server/discover` of a client that declares no capability (server/discover). */
export function discoverRequest(clientInfo: string): { method: string; params: string } {
  const meta = `"${META.protocolVersion}":"${MODERN_VERSION}","${META.clientInfo}":${clientInfo},"${META.clientCapabilities}":{}`;
  return { method: 'server/discover', params: `{"_meta":{${meta}}}` };
}
