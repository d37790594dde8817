import type { ErrorOutcome, GatewayErrorOutcome } from './outcome.js';

/** Errors of one side of a backend after which the side of another era may be tried. */

/**
 * The backend carries this request out on its side of another era alone, and has not begun it. Says nothing of the era
 * of the backend.
 */
export class OtherSide extends Error {
  override readonly name = 'OtherSide';
  /** The refusal, for where there is no other side. */
  readonly otherwise: ErrorOutcome;

  constructor(otherwise: ErrorOutcome) {
    super(otherwise.message);
    this.otherwise = otherwise;
  }
}

/** The backend refused what a server of this era would take: its era has to be found out again. */
export class WrongEra extends Error {
  override readonly name = 'WrongEra';
  /** The client's error if the era proves right and there is no `otherwise`. */
  readonly failure: GatewayErrorOutcome;
  /** The backend's own error for the client if the era proves right; undefined where it cannot be meant for it. */
  readonly otherwise: ErrorOutcome | undefined;
  /** Only a server of another era refuses like this: decides where probing proves nothing. */
  readonly proof: boolean;

  constructor(
    failure: GatewayErrorOutcome,
    meaning: { otherwise?: ErrorOutcome | undefined; proof?: boolean } = {},
  ) {
    super(failure.detail ?? failure.message);
    this.failure = failure;
    this.otherwise = meaning.otherwise;
    this.proof = meaning.proof === true;
  }
}
