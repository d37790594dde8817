import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { LRUCache } from 'lru-cache';
import type { ForwardedHeaders } from '../exchange/forwarded-headers.js';
import { NO_FORWARDED, REPLACING_HEADERS } from '../exchange/forwarded-headers.js';
import { sha256 } from '../exchange/utils/hash.js';
import { type Given, pathToGateway } from './forwarded-family.js';
import { type HeaderKind, headerKind } from './header-kinds.js';
import type { TrustedProxies } from './trusted-proxies.js';

export interface ForwardingOptions {
  /** Names of headers in lower case, each with `*` for any characters; `all` or `none`. */
  readonly headers: 'all' | 'none' | readonly string[];
  readonly query: boolean;
  /** Names of headers in lower case that change no answer, beside those of the table. */
  readonly neutral: readonly string[];
  /** Whether the backend gets the caller's credentials. */
  readonly authorization: boolean;
  /** Names of the headers that the route sets, in lower case. */
  readonly fixed: ReadonlySet<string>;
  /** Names of the parameters that the URL of the backend has. */
  readonly fixedParameters: ReadonlySet<string>;
  readonly trusted: TrustedProxies;
}

interface Header {
  /** In lower case. */
  readonly name: string;
  readonly kind: HeaderKind;
}

/** Combinations of headers and query that are remembered, by the text that they make. */
const REMEMBERED = 1_000;
const REMEMBERED_CHARS = 2 * 1024 * 1024;
const LONGEST_REMEMBERED = 16 * 1024;
/** Spellings of header names that are remembered. */
const MAX_NAMES = 2_000;
const VARIANT_CHARS = 22;
const ANY_LANGUAGE = '*';

/**
 * Selects what of a client's HTTP request goes to the backend. Clients send the same headers again and again: what they
 * come to is looked up by their text.
 */
export class Forwarding {
  readonly #options: ForwardingOptions;
  readonly #names = new Map<string, Header>();
  readonly #known = new LRUCache<string, ForwardedHeaders>({
    max: REMEMBERED,
    maxSize: REMEMBERED_CHARS,
    sizeCalculation: (_forwarded, key) => key.length + 1,
  });
  readonly #patterns: RegExp | undefined;

  constructor(options: ForwardingOptions) {
    this.#options = options;
    const { headers } = options;
    this.#patterns = typeof headers === 'string' ? undefined : anyOf(headers);
  }

  /**
   * @param withoutParameter name of a parameter of the query that is for the gateway
   */
  of(message: IncomingMessage, withoutParameter?: string): ForwardedHeaders {
    const { rawHeaders: raw, socket, headers } = message;
    const query = this.#query(message.url ?? '', withoutParameter);
    const trusted = this.#options.trusted.includes(socket.remoteAddress);
    const authorization = this.#options.authorization ? headers.authorization : undefined;
    const named = namedByConnection(headers.connection);
    let text = `${socket.remoteAddress}\n${headers.host}\n${query}\n${authorization}`;
    let kept: Header[] | undefined;
    let values: string[] | undefined;
    let perRequest: string[] | undefined;
    for (let i = 0; i < raw.length; i += 2) {
      const header = this.#header(raw[i] as string);
      const { kind, name } = header;
      if (kind === 'ends' || kind === 'connection' || named?.has(name) === true) continue;
      const value = raw[i + 1] as string;
      if (kind === 'per-request') {
        perRequest ??= [];
        perRequest.push(name, value);
      } else if (trusted || !BELIEVED_OF_PROXIES.has(kind)) {
        kept ??= [];
        values ??= [];
        kept.push(header);
        values.push(value);
        text += `\n${name}:${value}`;
      }
    }
    let forwarded = this.#known.get(text);
    if (forwarded === undefined) {
      forwarded = this.#make(message, { kept: kept ?? [], values: values ?? [], query, authorization });
      if (text.length <= LONGEST_REMEMBERED) this.#known.set(text, forwarded);
    }
    if (perRequest === undefined) return forwarded;
    return { ...forwarded, lines: [...(forwarded.lines ?? []), ...perRequest] };
  }

  #make(
    { socket, headers }: IncomingMessage,
    { kept, values, query, authorization }: Selected,
  ): ForwardedHeaders {
    const lines: string[] = [];
    const varying: string[] = [];
    const given: Given = {};
    for (const [index, { name, kind }] of kept.entries()) {
      const value = values[index] as string;
      if (isOfPath(kind)) given[kind] = given[kind] === undefined ? value : `${given[kind]}, ${value}`;
      else {
        lines.push(name, value);
        if (kind === 'keyed' || kind === 'by-proxy') varying.push(`${name}:${value}`);
      }
    }
    // Any language is the same as none (RFC 9110, section 12.5.4).
    const own = varying.filter((line) => line !== `accept-language:${ANY_LANGUAGE}`).sort(byName);
    const path = pathToGateway(given, {
      address: socket.remoteAddress,
      host: headers.host,
      encrypted: (socket as TLSSocket).encrypted === true,
    }).filter(([name]) => this.#isWanted(name) && !this.#options.fixed.has(name));
    for (const [name, value] of path) lines.push(name, value);
    const personal = own.length > 0 || query !== undefined;
    if (lines.length === 0 && query === undefined && authorization === undefined) return NO_FORWARDED;
    return {
      ...(authorization !== undefined && { authorization }),
      lines,
      ...(query !== undefined && { query }),
      // Not the host: replicas that are reached under different ones serve the same sessions and retries.
      ...(personal && { variant: sha256([query ?? '', ...own].join('\n')).slice(0, VARIANT_CHARS) }),
      personal,
    };
  }

  /** What the name of a header, as it is spelled in a request, means on this route. */
  #header(spelled: string): Header {
    const known = this.#names.get(spelled);
    if (known !== undefined) return known;
    const name = spelled.toLowerCase();
    const header = { name, kind: this.#kindOf(name) };
    if (this.#names.size < MAX_NAMES) this.#names.set(spelled, header);
    return header;
  }

  #kindOf(name: string): HeaderKind {
    const { neutral, fixed } = this.#options;
    const kind = headerKind(name);
    if (kind === 'ends' || kind === 'connection' || isOfPath(kind)) return kind;
    const isReplaced = fixed.has(name) && !REPLACING_HEADERS.some((other) => other === name);
    if (isReplaced || !this.#isWanted(name)) return 'ends';
    return kind === 'keyed' && neutral.includes(name) ? 'neutral' : kind;
  }

  #isWanted(name: string): boolean {
    const { headers } = this.#options;
    return headers === 'all' || (headers !== 'none' && this.#patterns?.test(name) === true);
  }

  /** The parameters of a request, without those that the backend's URL has. */
  #query(url: string, withoutParameter: string | undefined): string | undefined {
    const start = url.indexOf('?');
    if (start === -1 || !this.#options.query) return undefined;
    const end = url.indexOf('#', start);
    const query = url.slice(start + 1, end === -1 ? undefined : end);
    const { fixedParameters } = this.#options;
    if (fixedParameters.size === 0 && withoutParameter === undefined) return query === '' ? undefined : query;
    const kept = query.split('&').filter((parameter) => {
      const name = parameterName(parameter);
      return name !== withoutParameter && !fixedParameters.has(name);
    });
    return kept.length === 0 || (kept.length === 1 && kept[0] === '') ? undefined : kept.join('&');
  }
}

/** What is kept of a request. */
interface Selected {
  readonly kept: readonly Header[];
  /** Of each of them. */
  readonly values: readonly string[];
  readonly query: string | undefined;
  readonly authorization: string | undefined;
}

/** Anybody can send these: they are believed of a trusted proxy alone. */
const BELIEVED_OF_PROXIES: ReadonlySet<HeaderKind> = new Set([
  'by-proxy',
  'address',
  'for',
  'proto',
  'host',
  'forwarded',
]);

function isOfPath(kind: HeaderKind): kind is keyof Given {
  return kind === 'for' || kind === 'proto' || kind === 'host' || kind === 'forwarded';
}

/** The headers that belong to the connection since `Connection` names them (RFC 9110, section 7.6.1). */
function namedByConnection(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
}

/** Lines of one name keep their order; that of the names does not matter. */
function byName(a: string, b: string): number {
  const [x, y] = [a.slice(0, a.indexOf(':')), b.slice(0, b.indexOf(':'))];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** The decoded name of a parameter, as servers compare it. */
export function parameterName(parameter: string): string {
  const [first] = new URLSearchParams(parameter).keys();
  return first ?? '';
}

function anyOf(patterns: readonly string[]): RegExp {
  const source = patterns.map((pattern) =>
    pattern
      .split('*')
      .map((part) => part.replace(/[.+^$|{}()[\]\\?]/g, '\\$&'))
      .join('.*'),
  );
  return new RegExp(`^(?:${source.join('|')})$`, 'i');
}
