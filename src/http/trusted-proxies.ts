import { BlockList, isIPv6 } from 'node:net';

/** The peers whose headers about a request are believed. */
export class TrustedProxies {
  readonly #addresses = new BlockList();
  /** The last peer that was looked up: a proxy keeps its connections. */
  #last: string | undefined;
  #lastIsTrusted = false;

  /** @param addresses addresses and ranges (`10.0.0.0/8`), all valid */
  constructor(addresses: readonly string[]) {
    for (const text of addresses) {
      const [address = '', prefix] = text.split('/');
      if (prefix === undefined) this.#addresses.addAddress(address, familyOf(address));
      else this.#addresses.addSubnet(address, Number(prefix), familyOf(address));
    }
  }

  /** @param address of the peer; undefined for one that has none */
  includes(address: string | undefined): boolean {
    if (address === undefined) return false;
    if (address !== this.#last) {
      this.#lastIsTrusted = this.#addresses.check(address, familyOf(address));
      this.#last = address;
    }
    return this.#lastIsTrusted;
  }
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}
