import { ExchangeError, ServerRequestRefused, ServerRequestWithdrawn } from './errors.js';
import { OtherSide, WrongEra } from './side-errors.js';

/** Errors that the gateway throws on purpose. Every other error is a fault of the gateway itself. */
const FAILURES = [ExchangeError, WrongEra, OtherSide, ServerRequestRefused, ServerRequestWithdrawn] as const;

export function isFailure(error: unknown): error is Error {
  return FAILURES.some((kind) => error instanceof kind);
}

/**
 * For a `catch` behind which a failure does not matter.
 * @throws the error where it is a fault
 */
export function ignoreFailure(error: unknown): undefined {
  if (!isFailure(error)) throw error;
  return undefined;
}

/** For the `catch` of a promise that nobody awaits: ignores failures and reports faults. */
export function faultsTo(onFault: (error: unknown) => void): (error: unknown) => undefined {
  return (error) => {
    if (!isFailure(error)) onFault(error);
    return undefined;
  };
}
