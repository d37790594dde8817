/** What a trusted proxy has said of the client's way, by header. */
export interface Given {
  for?: string;
  proto?: string;
  host?: string;
  forwarded?: string;
}

/** The connection on which a request came. */
interface Peer {
  readonly address: string | undefined;
  /** The `Host` of the request. */
  readonly host: string | undefined;
  readonly encrypted: boolean;
}

const MAPPED = '::ffff:';

/**
 * The headers that tell the backend from where a request came, names and values: those of the connection, continuing what
 * a trusted proxy says. `Forwarded` (RFC 7239) is only continued, since few servers read it.
 */
export function pathToGateway(
  given: Given,
  { address, host, encrypted }: Peer,
): readonly (readonly [string, string])[] {
  const path: (readonly [string, string])[] = [];
  const peer = address?.startsWith(MAPPED) === true ? address.slice(MAPPED.length) : address;
  const proto = encrypted ? 'https' : 'http';
  if (peer !== undefined)
    path.push(['x-forwarded-for', given.for === undefined ? peer : `${given.for}, ${peer}`]);
  path.push(['x-forwarded-proto', given.proto ?? proto]);
  const named = given.host ?? host;
  if (named !== undefined) path.push(['x-forwarded-host', named]);
  if (given.forwarded !== undefined && peer !== undefined)
    path.push(['forwarded', `${given.forwarded}, for=${node(peer)};proto=${proto}`]);
  return path;
}

/** An address as RFC 7239 writes it. */
function node(address: string): string {
  return address.includes(':') ? `"[${address}]"` : address;
}
