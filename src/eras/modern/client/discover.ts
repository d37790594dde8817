import type { Exchange } from '../../../exchange/exchange.js';
import { type Outcome, ownResult } from '../../../exchange/outcome.js';
import type { RouteService } from '../../../exchange/route-service.js';
import { scanJson } from '../../../jsonrpc/index.js';
import { MODERN_VERSIONS } from '../wire/names.js';

/**
 * The outcome of `server/discover`, from the backend's description of itself in its own era.
 *
 * @throws ExchangeError if the backend cannot be asked
 */
export async function discover(route: RouteService, { caller, signal }: Exchange): Promise<Outcome> {
  const description = await route.describe(caller, signal);
  const versions = JSON.stringify(MODERN_VERSIONS);
  if (description.era === 'modern') {
    const bytes = description.result;
    const outcome = ownResult(bytes, scanJson(bytes, 2));
    outcome.edits.set('supportedVersions', versions);
    outcome.edits.set('capabilities', description.capabilities);
    outcome.edits.set('ttlMs', String(description.ttlMs));
    return { ...outcome, form: 'modern' };
  }
  const { capabilities, instructions, serverInfo } = description;
  const more = instructions === undefined ? '' : `,"instructions":${instructions}`;
  const bytes = Buffer.from(`{"supportedVersions":${versions},"capabilities":${capabilities}${more}}`);
  return ownResult(bytes, scanJson(bytes, 2), serverInfo);
}
