import type { Caller } from '../exchange/caller.js';
import { ExchangeError } from '../exchange/errors.js';
import type { ExchangeRequest } from '../exchange/exchange.js';
import type { CallRouting, Outbound } from '../exchange/outbound.js';
import { OtherSide, WrongEra } from '../exchange/side-errors.js';
import { waitFor } from '../exchange/utils/abortable.js';
import type { EraChoice } from './era-choice.js';

/** What a side is chosen for: a request of a caller, or something else that it needs. */
export interface Purpose {
  readonly caller: Caller;
  readonly request?: ExchangeRequest;
  /** Ends the wait for a side that is still to be found. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Works on the side that suits the backend; once more on another one if the first proves wrong.
 * @throws ExchangeError, WrongEra where there is no other side to try
 */
export async function attempt<T>(
  choice: EraChoice,
  purpose: Purpose,
  work: (side: Outbound, routing?: CallRouting) => Promise<T>,
): Promise<T> {
  const { doubts } = choice;
  const chosen = choice.outboundFor(purpose.caller, purpose.request);
  const side = chosen instanceof Promise ? await waitFor(chosen, purpose.signal) : chosen;
  try {
    return await work(side);
  } catch (error) {
    const other = await sideAfter(error, side, doubts, choice, purpose);
    return await work(other, { viaOtherEra: error instanceof OtherSide });
  }
}

/**
 * The side to try after a refusal.
 * @param doubts of the time when the refusing side was chosen
 * @throws what the refusal means where there is no other side to try
 */
async function sideAfter(
  error: unknown,
  tried: Outbound,
  doubts: number,
  choice: EraChoice,
  purpose: Purpose,
): Promise<Outbound> {
  if (error instanceof OtherSide) {
    const other = choice.otherThan(tried);
    if (other === undefined) throw new ExchangeError(error.otherwise);
    return other;
  }
  if (!(error instanceof WrongEra)) throw error;
  const meant = error.otherwise === undefined ? error : new ExchangeError(error.otherwise);
  if (!choice.contradicted(tried.era, doubts, error.proof ? error.message : undefined)) throw meant;
  let other: Outbound;
  try {
    const found = choice.outboundFor(purpose.caller, purpose.request);
    other = found instanceof Promise ? await waitFor(found, purpose.signal) : found;
  } catch (failure) {
    throw error.otherwise === undefined ? failure : meant;
  }
  // The verdict was right, so the refusal is about something else and would only be repeated.
  if (other === tried) throw meant;
  return other;
}
