// One client against one server through the gateway, and what is to be said of it.
import { ensure, HERE, ROOT } from './install.mjs';
import { freePort, run, scratchFolder, start, untilListening } from './processes.mjs';
import { FIXTURE, problemWith, STEPS } from './steps.mjs';

const CLIENT_MS = 120_000;

/** How a server is reached over each transport: what is started by us, and the backend of the route. */
const BACKENDS = {
  async http(server, installed) {
    const started = await startServer(server.http, installed);
    return { backend: { url: `${started.origin}${server.path ?? '/mcp'}` }, stop: started.stop };
  },
  async sse(server, installed) {
    const started = await startServer(server.sse, installed);
    return { backend: { url: `${started.origin}${server.ssePath ?? '/sse'}` }, stop: started.stop };
  },
  // The gateway starts it.
  async stdio(server, installed) {
    const { command, args = [], env, cwd } = server.stdio({ ...installed, here: HERE });
    return { backend: { command, args, ...(env && { env }), ...(cwd && { cwd }) }, stop: async () => {} };
  },
};

async function startServer(commandFor, installed) {
  const port = await freePort();
  const started = start(commandFor({ ...installed, here: HERE, port }));
  try {
    await untilListening(started, port);
  } catch (error) {
    await started.stop();
    throw error;
  }
  return { origin: `http://127.0.0.1:${port}`, stop: started.stop };
}

/** Installs and starts a server for a transport: the `backend` of a route, and `stop`. */
export async function openServer(server, transport) {
  return BACKENDS[transport](server, await ensure(server.install));
}

/** The words of the server and the steps that both can do; `gateway` is where it listens. */
export function stepsOf(client, server, gateway) {
  const { words: own = FIXTURE } = server;
  const words = typeof own === 'function' ? own({ gateway, here: HERE, root: ROOT }) : own;
  const lacks = { ...client.lacks, ...server.lacks };
  const steps = STEPS.filter((step) => lacks[step] === undefined && (step === 'connect' || words[step]));
  return { words, steps };
}

/** What a client says of a step in a line that it prints; nothing in other lines. */
function toldIn(line) {
  if (!line.startsWith('@step ')) return {};
  try {
    return JSON.parse(line.slice(6));
  } catch {
    return {};
  }
}

/** Runs a client on a URL: what it saw in each step. */
export async function runClient(client, url, { words, steps }) {
  const installed = await ensure(client.install);
  const told = new Map();
  const command = client.command?.(installed) ?? {
    command: process.execPath,
    args: [`${installed.scripts}/clients/${client.script}`],
  };
  // Some keep what they know of servers in the user's folder.
  const env = {
    HOME: scratchFolder(),
    ...command.env,
    PEER: JSON.stringify({ url, steps, words, mode: client.mode }),
  };
  const ended = await run({ ...command, env }, CLIENT_MS, (line) => {
    const { step, ...rest } = toldIn(line);
    if (step !== undefined) told.set(step, rest);
  });
  return { told, output: ended.output, timedOut: ended.timedOut };
}

/** Where a pair stands, as the tables' `at` sees it. */
export const placeOf = ({ transport, place, server, client }) =>
  `${transport} ${place} | ${client.name} ${client.version} | ${server.name} ${server.version}`;

/**
 * The verdict about a pair: `problems` by step, each with the `why` that the tables give, or without one; `stale` are
 * reasons for steps that went well.
 */
export function judge(pair, plan, { told, timedOut }, seen) {
  const { client, server } = pair;
  const limits = [...(client.limits ?? []), ...(server.limits ?? [])].filter(
    ({ at }) => at === undefined || at.test(placeOf(pair)),
  );
  const problems = [];
  for (const step of plan.steps) {
    const answer = told.get(step) ?? {
      error: timedOut ? 'the client did not end' : 'the client said nothing',
    };
    const problem = problemWith(step, plan.words[step], answer);
    if (problem === undefined) continue;
    problems.push({ step, problem, why: limits.find(({ steps }) => steps.includes(step))?.why });
    if (step === 'connect') return { steps: [], problems, stale: [], seen };
  }
  const failed = new Set(problems.map(({ step }) => step));
  const stale = limits.filter(
    ({ steps, sometimes }) =>
      !sometimes && steps.every((step) => plan.steps.includes(step) && !failed.has(step)),
  );
  const strange = strangeness(client, seen);
  if (strange !== undefined) problems.push({ step: 'connect', problem: strange });
  return {
    steps: plan.steps.filter((step) => !failed.has(step)),
    problems,
    stale: stale.map(({ why }) => why),
    seen,
  };
}

/** What a pair that seems to work must not have done. */
function strangeness({ era }, seen) {
  if (seen[0] === 'direct') return undefined;
  if (seen.length === 0) return 'nothing went through the gateway';
  const others = era === undefined ? [] : seen.filter((cell) => cell[0] !== era[0].toUpperCase());
  return others.length > 0 ? `spoke ${others.join(', ')}` : undefined;
}
