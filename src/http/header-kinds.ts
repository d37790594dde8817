import { nameMap } from '../jsonrpc/index.js';

/**
 * What becomes of a header of a client on its way to the backend.
 *
 * - `keyed` is passed on, and may change an answer: it is part of whose session, cached result, subscription, parked call
 *   and task it is.
 * - `neutral` is passed on, and changes no answer.
 * - `per-request` likewise, and differs from request to request.
 * - `by-proxy` tells of the client or the URL before a proxy: passed on where the proxy is trusted, and then `keyed`.
 * - `address` likewise, and changes no answer.
 * - `for`, `proto`, `host` and `forwarded` are set anew, and continued where the proxy is trusted.
 * - `ends` belongs to the connection, the protocol or the body, or is for the gateway.
 */
export type HeaderKind =
  | 'keyed'
  | 'neutral'
  | 'per-request'
  | 'by-proxy'
  | 'address'
  | 'for'
  | 'proto'
  | 'host'
  | 'forwarded'
  | 'connection'
  | 'ends';

/** By name in lower case; all others are `keyed`. The same table is in src/eras/README.md. */
const BY_NAME: ReadonlyMap<string, HeaderKind> = nameMap({
  // Of a single connection (RFC 9110, section 7.6.1), with those that `Connection` names.
  connection: 'connection',
  'keep-alive': 'ends',
  'proxy-connection': 'ends',
  'proxy-authorization': 'ends',
  'proxy-authenticate': 'ends',
  'http2-settings': 'ends',
  te: 'ends',
  trailer: 'ends',
  'transfer-encoding': 'ends',
  upgrade: 'ends',
  // Of the body and of its response, which the gateway reads and writes itself.
  accept: 'ends',
  'accept-charset': 'ends',
  'accept-encoding': 'ends',
  digest: 'ends',
  'repr-digest': 'ends',
  'want-content-digest': 'ends',
  'want-digest': 'ends',
  'want-repr-digest': 'ends',
  expect: 'ends',
  'if-match': 'ends',
  'if-modified-since': 'ends',
  'if-none-match': 'ends',
  'if-range': 'ends',
  'if-unmodified-since': 'ends',
  range: 'ends',
  // Of the protocol.
  'last-event-id': 'ends',
  // For the gateway. The guard has judged the origin; backends that protect themselves from DNS rebinding know other ones.
  authorization: 'ends',
  cookie: 'ends',
  cookie2: 'ends',
  host: 'ends',
  origin: 'ends',
  // About the client's way to the gateway.
  forwarded: 'forwarded',
  'x-forwarded-for': 'for',
  'x-forwarded-proto': 'proto',
  'x-forwarded-host': 'host',
  'x-forwarded-server': 'address',
  'x-real-ip': 'address',
  'x-client-ip': 'address',
  'x-cluster-client-ip': 'address',
  'true-client-ip': 'address',
  'cf-connecting-ip': 'address',
  'cf-connecting-ipv6': 'address',
  'fastly-client-ip': 'address',
  via: 'neutral',
  'cdn-loop': 'neutral',
  // About the client's software and its cache.
  'user-agent': 'neutral',
  'cache-control': 'neutral',
  pragma: 'neutral',
  priority: 'neutral',
  dnt: 'neutral',
  'sec-gpc': 'neutral',
  'upgrade-insecure-requests': 'neutral',
  // Ids and traces of single requests.
  traceparent: 'per-request',
  tracestate: 'per-request',
  baggage: 'per-request',
  b3: 'per-request',
  'correlation-context': 'per-request',
  'correlation-id': 'per-request',
  'request-id': 'per-request',
  'x-request-id': 'per-request',
  'x-correlation-id': 'per-request',
  'x-trace-id': 'per-request',
  'x-request-start': 'per-request',
  'x-amzn-trace-id': 'per-request',
  'x-amz-cf-id': 'per-request',
  'x-appgw-trace-id': 'per-request',
  'x-azure-ref': 'per-request',
  'x-client-trace-id': 'per-request',
  'x-cloud-trace-context': 'per-request',
  'x-ms-client-request-id': 'per-request',
  'x-vercel-id': 'per-request',
  'fly-request-id': 'per-request',
  'cf-ray': 'per-request',
  'grpc-trace-bin': 'per-request',
  'sentry-trace': 'per-request',
  'uber-trace-id': 'per-request',
  newrelic: 'per-request',
  'elastic-apm-traceparent': 'per-request',
});

/** By the beginning of the name, for names that {@link BY_NAME} does not have. */
const BY_PREFIX: readonly (readonly [string, HeaderKind])[] = [
  ['mcp-', 'ends'],
  ['content-', 'ends'],
  ['sec-websocket-', 'ends'],
  // What a browser says of the page, which the guard has judged by its Origin.
  ['sec-fetch-', 'ends'],
  ['sec-ch-', 'neutral'],
  ['x-forwarded-', 'by-proxy'],
  ['x-envoy-', 'per-request'],
  ['x-b3-', 'per-request'],
  ['x-datadog-', 'per-request'],
  ['x-instana-', 'per-request'],
];

/** @param name in lower case */
export function headerKind(name: string): HeaderKind {
  return BY_NAME.get(name) ?? BY_PREFIX.find(([prefix]) => name.startsWith(prefix))?.[1] ?? 'keyed';
}
