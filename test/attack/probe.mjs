// Someone else, in a process of its own: sends a small call to each route in turn, and notes how long each takes, and how
// long the gateway's main thread worked meanwhile. The latter does not depend on what else the machine does.
// `start` begins a count; `stop` gives `{ latencies, work, failures }`, in milliseconds.

import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';

const [origin, pid, ...paths] = process.argv.slice(2);
const SCHEDULED = `/proc/${pid}/task/${pid}/schedstat`;
const EVERY_MS = 20;
const GIVE_UP_MS = 10_000;
const agent = new Agent({ keepAlive: true });
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'probe', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const body = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: {}, _meta: meta },
});
const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  authorization: 'Bearer other',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': 'echo',
  'content-length': Buffer.byteLength(body),
};

let latencies = [];
let work = [];
let failures = [];

const busyMs = () => Number(readFileSync(SCHEDULED, 'latin1').split(' ')[0]) / 1e6;

function call(path) {
  const begun = performance.now();
  const busy = busyMs();
  return new Promise((resolve) => {
    const done = (failure) => {
      if (failure === undefined) {
        latencies.push(performance.now() - begun);
        work.push(busyMs() - busy);
      } else failures.push(failure);
      resolve();
    };
    const sent = request(
      `${origin}${path}`,
      { method: 'POST', agent, headers, timeout: GIVE_UP_MS },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () =>
          done(text.includes('"result"') ? undefined : `${response.statusCode} ${text.slice(0, 200)}`),
        );
      },
    );
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${GIVE_UP_MS} ms`)));
    sent.on('error', (error) => done(error.message));
    sent.end(body);
  });
}

process.on('message', (message) => {
  if (message === 'stop') process.send({ latencies, work, failures });
  latencies = [];
  work = [];
  failures = [];
  if (message === 'start') process.send('started');
});

process.send({ port: 0 });
for (let turn = 0; ; turn++) {
  const pause = new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  await Promise.all([call(paths[turn % paths.length]), pause]);
}
