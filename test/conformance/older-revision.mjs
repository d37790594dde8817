// A proxy that puts a client on an older revision than it offers: the suite offers its newest one whatever it is asked.

import { once } from 'node:events';
import { createServer, request } from 'node:http';

const OFFERED = '2025-11-25';
/** Revisions whose clients do not name theirs in a header. */
const WITHOUT_HEADER = new Set(['2025-03-26', '2024-11-05']);

function rewritten(body, revision) {
  const text = body.toString();
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return text;
  }
  if (message.method !== 'initialize') return text;
  return JSON.stringify({ ...message, params: { ...message.params, protocolVersion: revision } });
}

/** Starts it in front of `url`; `{ url, close }`. */
export async function startOlder(url, revision) {
  const target = new URL(url);
  const server = createServer(async (incoming, response) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = rewritten(Buffer.concat(chunks), revision);
    const headers = { ...incoming.headers };
    // A stranger's name stays what it is: whoever is behind has to refuse it.
    headers.host = headers.host.replace(String(server.address().port), target.port);
    if (headers['mcp-protocol-version'] === OFFERED) headers['mcp-protocol-version'] = revision;
    if (WITHOUT_HEADER.has(revision)) delete headers['mcp-protocol-version'];
    delete headers['content-length'];
    delete headers['transfer-encoding'];
    if (body !== '') headers['content-length'] = Buffer.byteLength(body);
    const onward = request(target, { method: incoming.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    onward.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}${target.pathname}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
