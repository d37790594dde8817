import type { ReplayBudget } from './downstream/replay-budget.js';
import type { HttpServer } from './http/server.js';
import type { BuiltRoute } from './routes/build-route.js';

/** Longest time for detached clients to come back for the result of their call. */
const RETURN_MS = 2_000;

export interface ShutdownTimes {
  /** Between a readiness that fails and the end of the port, in milliseconds. */
  readonly delayMs: number;
  /** Longest time for requests in flight to finish, in milliseconds. */
  readonly graceMs: number;
}

/**
 * Lets the readiness check fail, and after the delay stops accepting, finishes what is in flight, then ends streams, backend
 * sessions and connections, in this order.
 */
export async function shutDown(
  server: HttpServer,
  routes: readonly BuiltRoute[],
  replay: ReplayBudget | undefined,
  { delayMs, graceMs }: ShutdownTimes,
): Promise<void> {
  const inbounds = routes.flatMap(({ clientSides }) => clientSides.map(({ inbound }) => inbound));
  const streams = routes.flatMap(({ clientSides }) => clientSides.map(({ sse }) => sse));
  server.endReadiness();
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  server.stopAccepting();
  await Promise.all([
    Promise.resolve(replay?.close(RETURN_MS)).then(() => server.fastify.server.close()),
    ...routes.map(({ route }) => route.drain(graceMs)),
    ...inbounds.map((inbound) => inbound.drain()),
  ]);
  // A backend may take seconds to end each of its sessions. A transport that makes sessions itself ends them by
  // closing, also those that are still being opened.
  await Promise.all([
    ...routes.map(({ transport }) => (transport.ownsSessions === true ? transport.close() : undefined)),
    ...inbounds.map((inbound) => inbound.close()),
    ...streams.map((stream) => stream?.close()),
    ...routes.map(({ route }) => route.close()),
  ]);
  await Promise.all(routes.map(({ transport }) => transport.close()));
  await server.fastify.close();
}
