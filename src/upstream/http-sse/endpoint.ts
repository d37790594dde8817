import { TransportError } from '../errors.js';

/**
 * Where messages go (2024-11-05, basic/transports, "HTTP with SSE"): what the `endpoint` event says, seen from the URL
 * of the stream. Credentials go there, so another origin than the stream's must be named by the configuration.
 * @param announced data of the event: a path, a query, or a URL
 * @param streamUrl as configured, which is what clients in use resolve it by, whatever they were redirected to
 * @param messagesUrl the configured place, which takes over the query of what is announced: the session is named there
 * @throws TransportError `unusable`
 */
export function resolveEndpoint(announced: Buffer, streamUrl: URL, messagesUrl: URL | undefined): URL {
  // The URL parser drops white space around the text, and line breaks within.
  const text = announced.toString('utf8');
  const url = URL.canParse(text, streamUrl.href) ? new URL(text, streamUrl) : undefined;
  if (messagesUrl !== undefined) return withQuery(messagesUrl, url?.search ?? '');
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw unusable(`announces no URL to send messages to, but ${JSON.stringify(text.slice(0, 100))}`);
  }
  if (url.origin !== streamUrl.origin) {
    throw unusable(
      `wants messages sent to another origin, ${url.origin}; if that is right, name the place as backend.messagesUrl`,
    );
  }
  return url;
}

function withQuery(configured: URL, query: string): URL {
  const url = new URL(configured);
  url.search = [url.search, query]
    .map((part) => part.replace(/^\?/, ''))
    .filter((part) => part !== '')
    .join('&');
  return url;
}

function unusable(what: string): TransportError {
  return new TransportError('unusable', `its event stream ${what}`);
}
