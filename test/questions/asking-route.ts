import { startGateway, type TestGateway } from '../support/gateway.js';
import { keeper } from '../support/keeper.js';
import type { LegacyScript } from '../support/misbehave.js';
import type { Loose } from '../support/net.js';
import type { ModernOptions } from '../support/raw.js';
import { type AskingBackend, ModernCaller, startAskingBackend } from './scripted.js';

/** A legacy backend whose tool asks, and a gateway in front of it. */
export interface AskingRoute {
  readonly backend: AskingBackend;
  readonly gateway: TestGateway;
  /** A modern client's call of the tool. */
  caller(options?: ModernOptions): ModernCaller;
}

/**
 * For the tests of a file: `setUp` starts an {@link AskingRoute} with options of the route and of the backend, closed when the test
 * is over, as is what `keep` is given.
 */
export function askingRoutes() {
  const keep = keeper();
  async function setUp(
    { backend: target, ...route }: Loose = {},
    script: LegacyScript = {},
  ): Promise<AskingRoute> {
    const backend = await keep(startAskingBackend(script));
    const gateway = await keep(
      startGateway({ '/mcp': { backend: { url: backend.url, era: 'legacy', ...target }, ...route } }),
    );
    return { backend, gateway, caller: (options) => new ModernCaller(gateway.url(), {}, options) };
  }
  return { keep, setUp };
}
