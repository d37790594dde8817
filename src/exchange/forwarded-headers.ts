/** HTTP headers of the client that are forwarded to the backend, and replace fixed ones of the route. */
export const FORWARDED_HEADERS = ['authorization', 'traceparent', 'tracestate'] as const;

export type ForwardedHeaders = { readonly [Name in (typeof FORWARDED_HEADERS)[number]]?: string };

export const NO_FORWARDED: ForwardedHeaders = {};
