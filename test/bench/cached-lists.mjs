// What a list costs that the gateway has kept, against the pipe that has to fetch it from the backend each time.

import { route, startGateway } from './gateway.mjs';
import { LIST_BYTES, TOOL_LIST } from './list-messages.mjs';
import { ask, end, forkServer } from './processes.mjs';
import { PIPE } from './report.mjs';
import { alternate, cpuRatio, undisturbedCpu, warmUp } from './rounds.mjs';

/** What allows the gateway to keep the list: era and path of the backend, and more of the route. */
const SOURCES = {
  'ML, kept by configuration': { era: 'legacy', url: '/mcp', extra: { cache: { 'tools/list': '60s' } } },
  'MM, kept by a public hint': { era: 'modern', url: '/public' },
  'MM, kept by a private hint': { era: 'modern', url: '/private' },
};

/** Makes sure that what is measured is what it is called: whether the backend is asked again by a burst of requests. */
async function keptOrFetched(backend, subject) {
  await warmUp(subject, 0);
  const before = await ask(backend.child, { ask: true });
  await warmUp(subject, 0);
  const after = await ask(backend.child, { ask: true });
  if (after.listed > before.listed !== (subject.name === PIPE))
    throw new Error(`${subject.name}: ${after.listed - before.listed} requests reached the backend`);
}

/**
 * Modern clients ask for the list on each kind of route and through the pipe. Returns `{ bytes, cpu: { name: { kept,
 * pipe, ratio } } }`: bytes of the list, CPU microseconds per request.
 */
export async function measureCachedLists({ rounds, warmUpMs }) {
  const backend = await forkServer('list-backend.mjs');
  const pipe = await forkServer('proxies/pipe.mjs', backend.origin);
  const client = { path: '/mcp', era: 'modern', request: TOOL_LIST };
  const subjects = [{ name: PIPE, ...client, ...pipe }];
  for (const [name, { era, url, extra }] of Object.entries(SOURCES)) {
    const routes = [route(client.path, backend.origin + url, era, extra)];
    subjects.push({ name, ...client, ...(await startGateway(backend.origin, { routes })) });
  }
  for (const subject of subjects) await keptOrFetched(backend, subject);
  for (const subject of subjects) await warmUp(subject, warmUpMs);
  const results = await alternate(subjects, rounds);
  await Promise.all([backend, ...subjects].map(({ child }) => end(child)));

  const figures = (name) => ({
    kept: undisturbedCpu(results.get(name)),
    pipe: undisturbedCpu(results.get(PIPE)),
    ratio: cpuRatio(results, name, PIPE),
  });
  return {
    bytes: LIST_BYTES,
    cpu: Object.fromEntries(Object.keys(SOURCES).map((name) => [name, figures(name)])),
  };
}
