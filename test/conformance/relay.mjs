// A proxy that changes what goes by.

import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { Transform } from 'node:stream';

const unchanged = (text) => text;

/** Passes text on line by line, so that what is changed is whole: a body of JSON, or a line of an event stream. */
function byLine(change) {
  let rest = '';
  return new Transform({
    decodeStrings: true,
    transform(chunk, _encoding, done) {
      const text = rest + chunk.toString('latin1');
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      done(null, Buffer.from(change(text.slice(0, end)), 'latin1'));
    },
    flush(done) {
      done(null, Buffer.from(change(rest), 'latin1'));
    },
  });
}

/**
 * Starts it in front of `url`.
 * @param changes.headers changes the headers of a request in place
 * @param changes.body gives the body of a request, of what it is
 * @param changes.answer the same for the lines of an answer, in Latin 1
 * @returns `{ url, close }`
 */
export async function startRelay(
  url,
  { headers: changeHeaders, body: changeBody = unchanged, answer: change },
) {
  const target = new URL(url);
  const server = createServer(async (incoming, response) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = changeBody(Buffer.concat(chunks).toString());
    const headers = { ...incoming.headers };
    // A stranger's name stays what it is: whoever is behind has to refuse it.
    headers.host = headers.host.replace(String(server.address().port), target.port);
    changeHeaders?.(headers);
    delete headers['content-length'];
    delete headers['transfer-encoding'];
    if (body !== '') headers['content-length'] = Buffer.byteLength(body);
    const onward = request(target, { method: incoming.method, headers }, (answer) => {
      if (change) delete answer.headers['content-length'];
      response.writeHead(answer.statusCode, answer.headers);
      if (change) answer.pipe(byLine(change)).pipe(response);
      else answer.pipe(response);
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
