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

/** Statuses that another attempt may not get. */
const BUSY: ReadonlySet<number> = new Set([408, 425, 429]);

/** Generous: documents in use have a few hundred bytes. */
const MAX_BYTES = 256 * 1024;

export interface BackendMetadataOptions {
  /** MCP endpoint of the backend. */
  readonly url: string;
  readonly hostHeader: string | undefined;
  /** Fixed headers of the route. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** A document of the backend, and the `resource` that it names. */
interface MetadataDocument {
  readonly body: Buffer;
  readonly root: JsonNode;
  readonly resource: string;
}

/** Whether the backend has metadata cannot be found out now. */
export class MetadataUnavailable extends Error {}

/**
 * The protected resource metadata of one backend (RFC 9728), which names its authorization servers. Fetched from the URL
 * in the backend's challenges, then from the two well-known ones (basic/authorization, "Protected Resource Metadata
 * Discovery Requirements"); never from another origin than the backend's.
 */
export class BackendMetadata {
  readonly #options: BackendMetadataOptions;
  readonly #endpoint: URL;
  readonly #names: OwnNames;
  /** Path and query from the last challenge. */
  #path: string | undefined;
  /** The request in progress. */
  #pending: Promise<MetadataDocument | undefined> | undefined;

  constructor(options: BackendMetadataOptions) {
    this.#options = options;
    this.#endpoint = new URL(options.url);
    this.#names = new OwnNames(this.#endpoint, options.hostHeader);
  }

  /**
   * Learns the URL of the metadata from a challenge.
   * @returns whether it is the backend's own, which clients must not see
   */
  learn(url: string): boolean {
    const path = this.#pathOf(url);
    if (path !== undefined) this.#path = path;
    return path !== undefined;
  }

  /**
   * The backend's document; undefined when it has none. If it names the backend, that is replaced by `resource`, and
   * signed claims, which would contradict it, are removed. A document that names anything else is not changed: clients
   * have to see that it is not theirs.
   * @throws MetadataUnavailable
   */
  async document(resource: string): Promise<Buffer | undefined> {
    // One request at a time: the endpoint is public.
    this.#pending ??= this.#find().finally(() => {
      this.#pending = undefined;
    });
    const document = await this.#pending;
    return document && this.#renamed(document, resource);
  }

  async #find(): Promise<MetadataDocument | undefined> {
    const { pathname } = this.#endpoint;
    const inserted = `${WELL_KNOWN}${pathname === '/' ? '' : pathname}`;
    const tried = new Set<string>();
    const attempt = async (path: string | undefined): Promise<MetadataDocument | undefined> => {
      if (path === undefined || tried.has(path)) return undefined;
      tried.add(path);
      const { status, body } = await this.#get(path);
      if (status >= 500 || BUSY.has(status)) throw new MetadataUnavailable(`HTTP ${status}`);
      return status === 200 ? readDocument(body) : undefined;
    };
    return (
      (await attempt(this.#path)) ??
      (await attempt(inserted)) ??
      (await attempt(WELL_KNOWN)) ??
      (await attempt(await this.#pathFromChallenge()))
    );
  }

  /** Provokes a challenge, unless this process has seen one. */
  async #pathFromChallenge(): Promise<string | undefined> {
    if (this.#path !== undefined) return undefined;
    const { status, headers } = await this.#get(this.#endpoint.pathname + this.#endpoint.search);
    const challenge = headers['www-authenticate'];
    if (status !== 401 || challenge === undefined) return undefined;
    const url = resourceMetadataOf(challenge);
    if (url !== undefined) this.learn(url);
    return this.#path;
  }

  async #get(path: string): Promise<SmallResponse> {
    const { headers, hostHeader, timeoutMs } = this.#options;
    const host = hostHeader === undefined ? {} : { host: hostHeader };
    try {
      return await smallGet(
        this.#urlOf(path),
        { ...headers, ...host, accept: 'application/json' },
        { timeoutMs, maxBytes: MAX_BYTES },
      );
    } catch (error) {
      throw new MetadataUnavailable((error as Error).message);
    }
  }

  /**
   * Path and query of a URL on the backend. A private name may be the backend's only in a well-known URL of metadata
   * (RFC 9728, section 3.1).
   */
  #pathOf(text: string): string | undefined {
    const url = this.#parse(text);
    if (url === undefined) return undefined;
    const { pathname, search } = url;
    const own = this.#names.has(url) || (pathname.startsWith(WELL_KNOWN) && this.#names.mayHave(url));
    return own ? pathname + search : undefined;
  }

  /** The URL on the backend's origin. A path that begins with two slashes would name another one if it were resolved. */
  #urlOf(path: string): URL {
    const url = new URL(this.#endpoint.origin + path);
    if (url.origin !== this.#endpoint.origin) throw new Error(`not on ${this.#endpoint.origin}: ${path}`);
    return url;
  }

  #parse(text: string): URL | undefined {
    return URL.canParse(text, this.#endpoint.origin) ? new URL(text, this.#endpoint.origin) : undefined;
  }

  #renamed({ body, root, resource: named }: MetadataDocument, resource: string): Buffer {
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

/** Undefined if the body is no metadata document; `resource` is its only required member. */
function readDocument(body: Buffer): MetadataDocument | undefined {
  try {
    const root = scanJson(body, 1);
    const resource = root.kind === 'object' ? stringOf(body, getMember(body, root, 'resource')) : undefined;
    return resource === undefined ? undefined : { body, root, resource };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined;
    throw error;
  }
}
