import { TransportError } from '../errors.js';

/**
 * Resolves the URL for messages from an `endpoint` event (2024-11-05, basic/transports, "HTTP with SSE"). Messages
 * carry credentials, so another origin than the stream's must be configured.
 * @param announced data of the event: a path, a query, or a URL
 * @param streamUrl as configured; clients in use resolve by it even after redirects
 * @param messagesUrl the configured URL, which gets the query of the announced one: the session id is in there
 * @throws TransportError `unusable`
 */
export function resolveEndpoint(announced: Buffer, streamUrl: URL, messagesUrl: URL | undefined): URL {
  // The URL parser removes white space around the text, and line breaks within it.
  const text = announced.toString('utf8');
  const url = URL.canParse(text, streamUrl.href) ? new URL(text, streamUrl) : undefined;
  if (messagesUrl !== undefined) return withQuery(messagesUrl, url?.search ?? '');
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw unusable(`announces no URL to send messages to, but ${JSON.stringify(text.slice(0, 100))}`);
  }
  if (url.origin !== streamUrl.origin) {
    throw unusable(
      `wants messages sent to another origin, ${url.origin}; if that is right, configure it as backend.messagesUrl`,
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
