import {
  getMember,
  type JsonNode,
  JsonSyntaxError,
  Rope,
  scanJson,
  stringOf,
  writeObject,
} from '../jsonrpc/index.js';
import { type SmallResponse, smallGet } from '../upstream/small-get.js';
import { resourceMetadataOf } from './challenge.js';
import { OwnNames } from './own-names.js';

export const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** The server would say something else at another time. */
const BUSY: ReadonlySet<number> = new Set([408, 425, 429]);

/** Documents in use have a few hundred bytes. */
const MAX_BYTES = 256 * 1024;

export interface BackendMetadataOptions {
  /** MCP endpoint of the backend. */
  readonly url: string;
  readonly hostHeader: string | undefined;
  /** Fixed headers of the route. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** A document of the backend, with the resource that it names. */
interface Found {
  readonly body: Buffer;
  readonly root: JsonNode;
  readonly named: string;
}

/** Thrown where it cannot be said whether a backend has metadata. */
export class MetadataUnavailable extends Error {}

/**
 * The protected resource metadata of one backend (RFC 9728): who issues the credentials that it takes. It is looked for
 * where the backend's challenges say that it is, and in the two places that the MCP specification names
 * (basic/authorization, "Protected Resource Metadata Discovery Requirements"); never on another origin than the backend's.
 */
export class BackendMetadata {
  readonly #options: BackendMetadataOptions;
  readonly #endpoint: URL;
  readonly #names: OwnNames;
  /** Where the last challenge said that it is: path and query. */
  #place: string | undefined;
  #looking: Promise<Found | undefined> | undefined;

  constructor(options: BackendMetadataOptions) {
    this.#options = options;
    this.#endpoint = new URL(options.url);
    this.#names = new OwnNames(this.#endpoint, options.hostHeader);
  }

  /**
   * Learns from a challenge where the metadata is.
   * @returns whether the URL is one of the backend's own, which is nobody else's to see
   */
  learn(url: string): boolean {
    const place = this.#placeOf(url);
    if (place !== undefined) this.#place = place;
    return place !== undefined;
  }

  /**
   * The backend's document, undefined when it has none. Where it names the backend, it names `resource` instead; signed
   * claims, which would contradict that, are left out. All else stays byte for byte, and so does a document of anything
   * else: clients have to see that it is not meant for them.
   * @throws MetadataUnavailable
   */
  async document(resource: string): Promise<Buffer | undefined> {
    // Anybody may ask, and as often as they like: the backend is asked once at a time.
    this.#looking ??= this.#find().finally(() => {
      this.#looking = undefined;
    });
    const found = await this.#looking;
    return found && this.#renamed(found, resource);
  }

  async #find(): Promise<Found | undefined> {
    const { pathname } = this.#endpoint;
    const inserted = `${WELL_KNOWN}${pathname === '/' ? '' : pathname}`;
    const tried = new Set<string>();
    const attempt = async (place: string | undefined): Promise<Found | undefined> => {
      if (place === undefined || tried.has(place)) return undefined;
      tried.add(place);
      const { status, body } = await this.#get(place);
      if (status >= 500 || BUSY.has(status)) throw new MetadataUnavailable(`HTTP ${status}`);
      return status === 200 ? readDocument(body) : undefined;
    };
    return (
      (await attempt(this.#place)) ??
      (await attempt(inserted)) ??
      (await attempt(WELL_KNOWN)) ??
      (await attempt(await this.#askForPlace()))
    );
  }

  /** What a challenge of the backend says, where none has been seen by this process. */
  async #askForPlace(): Promise<string | undefined> {
    if (this.#place !== undefined) return undefined;
    const { status, headers } = await this.#get(this.#endpoint.pathname + this.#endpoint.search);
    const challenge = headers['www-authenticate'];
    if (status !== 401 || challenge === undefined) return undefined;
    const url = resourceMetadataOf(challenge);
    if (url !== undefined) this.learn(url);
    return this.#place;
  }

  async #get(place: string): Promise<SmallResponse> {
    const { headers, hostHeader, timeoutMs } = this.#options;
    const host = hostHeader === undefined ? {} : { host: hostHeader };
    try {
      return await smallGet(
        new URL(place, this.#endpoint.origin),
        { ...headers, ...host, accept: 'application/json' },
        { timeoutMs, maxBytes: MAX_BYTES },
      );
    } catch (error) {
      throw new MetadataUnavailable((error as Error).message);
    }
  }

  /** Where it is on the backend: by an inner name, only what is a place for metadata (RFC 9728, section 3.1). */
  #placeOf(text: string): string | undefined {
    const url = this.#parse(text);
    if (url === undefined) return undefined;
    const { pathname, search } = url;
    const own = this.#names.has(url) || (pathname.startsWith(WELL_KNOWN) && this.#names.mayHave(url));
    return own ? pathname + search : undefined;
  }

  #parse(text: string): URL | undefined {
    return URL.canParse(text, this.#endpoint.origin) ? new URL(text, this.#endpoint.origin) : undefined;
  }

  #renamed({ body, root, named }: Found, resource: string): Buffer {
    const url = this.#parse(named);
    if (url === undefined || !this.#names.mayHave(url)) return body;
    const out = new Rope();
    const edits = [
      ['resource', JSON.stringify(resource)],
      ['signed_metadata', undefined],
    ] as const;
    writeObject(out, body, root, new Map(edits));
    return out.toBuffer();
  }
}

/** Undefined for what is no such document: `resource` is the one member that every one has. */
function readDocument(body: Buffer): Found | undefined {
  try {
    const root = scanJson(body, 1);
    const named = root.kind === 'object' ? stringOf(body, getMember(body, root, 'resource')) : undefined;
    return named === undefined ? undefined : { body, root, named };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined;
    throw error;
  }
}
