// The MCP server with many tools that tells when they change: on GET streams in the legacy era, on `subscriptions/listen`
// in the modern one. Over IPC, `{ announce: era, padding }` announces a change with so many bytes of ballast and
// `{ ask: true }` is answered with `{ feeds: { legacy, modern }, listed }`, the open streams and the requests for the list.

import { serve } from './answering.mjs';
import { acknowledgement, change, listResults } from './list-messages.mjs';

const results = { public: listResults('public'), private: listResults('private') };

/** Requests so far for the list. */
let listed = 0;

/** Open streams by era, each with the id of its subscription (undefined for GET streams). */
const feeds = { legacy: new Map(), modern: new Map() };

const write = (res, frame) => res.write(`event: message\ndata: ${JSON.stringify(frame)}\n\n`);

function open(era, res, id) {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  res.flushHeaders();
  feeds[era].set(res, id);
  res.on('close', () => feeds[era].delete(res));
}

serve({
  resultsAt: (path) => (path === '/private' ? results.private : results.public),
  onRequest: (method) => {
    if (method === 'tools/list') listed += 1;
  },
  onGet: (res) => open('legacy', res),
  onListen: (res, id) => {
    open('modern', res, id);
    write(res, acknowledgement(id));
  },
});

process.on('message', ({ announce, padding = 0, ask }) => {
  if (ask) process.send({ feeds: { legacy: feeds.legacy.size, modern: feeds.modern.size }, listed });
  if (announce) for (const [res, id] of feeds[announce]) write(res, change(padding, id));
});
