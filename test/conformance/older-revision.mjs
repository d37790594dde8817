// Puts a client on an older revision than it offers: the suite offers its newest one whatever it is asked.

import { startRelay } from './relay.mjs';

const OFFERED = '2025-11-25';
/** Revisions whose clients do not name theirs in a header. */
const WITHOUT_HEADER = new Set(['2025-03-26', '2024-11-05']);

function rewritten(text, revision) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return text;
  }
  if (message.method !== 'initialize') return text;
  return JSON.stringify({ ...message, params: { ...message.params, protocolVersion: revision } });
}

/** Starts a relay that does so in front of `url`; `{ url, close }`. */
export const startOlder = (url, revision) =>
  startRelay(url, {
    headers(headers) {
      if (headers['mcp-protocol-version'] === OFFERED) headers['mcp-protocol-version'] = revision;
      if (WITHOUT_HEADER.has(revision)) delete headers['mcp-protocol-version'];
    },
    body: (text) => rewritten(text, revision),
  });
