import type { ClientCapabilities } from './client-capabilities.js';
import type { Principal } from './credentials.js';
import { overloaded } from './errors.js';

/** Keeps state of clients, some of which can be dropped and made anew when its client comes back. */
export interface StateHolder {
  /**
   * Drops the state of one client that is idle.
   * @param principal whose it is to be; undefined for anyone's
   * @returns false if there is none
   */
  giveWay(principal: Principal | undefined): boolean;
}

/** What is kept for one client. */
export interface KeptState {
  readonly principal: Principal;
  /** Bytes of what is kept for this client alone. */
  readonly bytes: number;
  /** What clients that declare the same share. */
  readonly declarations: readonly ClientCapabilities[];
}

/** Bytes for each character of a declaration: its text, and the parsed value. */
const DECLARATION_WEIGHT = 12;

/** The memory for all that clients say of themselves and that is kept between their requests, on all routes. */
export class ClientState {
  readonly #maxBytes: number;
  readonly #holders = new Set<StateHolder>();
  readonly #byPrincipal = new Map<Principal, number>();
  /** How many clients declare it. */
  readonly #declared = new Map<ClientCapabilities, number>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes in use. */
  get bytes(): number {
    return this.#bytes;
  }

  join(holder: StateHolder): void {
    this.#holders.add(holder);
  }

  leave(holder: StateHolder): void {
    this.#holders.delete(holder);
  }

  /**
   * Takes room for the state of a client. State of the principal that holds most gives way first.
   * @throws ExchangeError if none can give way
   */
  take(kept: KeptState): void {
    const bytes = kept.bytes + this.#unshared(kept.declarations);
    while (this.#bytes + bytes > this.#maxBytes) {
      if (!this.#makeRoom(kept.principal))
        throw overloaded(`limit of ${this.#maxBytes} bytes of client state reached (limits.clientState)`);
    }
    for (const declaration of kept.declarations) {
      const count = this.#declared.get(declaration) ?? 0;
      if (count === 0) this.#bytes += weightOf(declaration);
      this.#declared.set(declaration, count + 1);
    }
    this.#add(kept.principal, kept.bytes);
  }

  release({ principal, bytes, declarations }: KeptState): void {
    for (const declaration of declarations) {
      const count = (this.#declared.get(declaration) ?? 1) - 1;
      if (count > 0) this.#declared.set(declaration, count);
      else if (this.#declared.delete(declaration)) this.#bytes -= weightOf(declaration);
    }
    this.#add(principal, -bytes);
  }

  #add(principal: Principal, bytes: number): void {
    this.#bytes += bytes;
    const own = (this.#byPrincipal.get(principal) ?? 0) + bytes;
    if (own > 0) this.#byPrincipal.set(principal, own);
    else this.#byPrincipal.delete(principal);
  }

  #unshared(declarations: readonly ClientCapabilities[]): number {
    let bytes = 0;
    for (const declaration of declarations)
      if (!this.#declared.has(declaration)) bytes += weightOf(declaration);
    return bytes;
  }

  #makeRoom(newcomer: Principal): boolean {
    return [this.#heaviest(), newcomer, undefined].some((principal) =>
      [...this.#holders].some((holder) => holder.giveWay(principal)),
    );
  }

  #heaviest(): Principal | undefined {
    let heaviest: Principal | undefined;
    let most = 0;
    for (const [principal, bytes] of this.#byPrincipal) {
      if (bytes <= most) continue;
      heaviest = principal;
      most = bytes;
    }
    return heaviest;
  }
}

function weightOf({ text }: ClientCapabilities): number {
  return text.length * DECLARATION_WEIGHT;
}
