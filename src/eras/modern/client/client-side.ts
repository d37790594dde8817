import type { ClientSide, ClientSideOptions } from '../../era.js';
import { ModernInbound } from './inbound.js';

export function openClientSide({ route, sealer, ticker, questions, tasks }: ClientSideOptions): ClientSide {
  const parking = { route, sealer, ticker, ...questions };
  return { inbound: new ModernInbound(parking, { route, sealer, ticker, ...tasks }), sse: undefined };
}
