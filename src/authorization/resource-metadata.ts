import type { IncomingMessage } from 'node:http';
import { type BackendMetadata, WELL_KNOWN } from './backend-metadata.js';
import { changeResourceMetadata } from './challenge.js';

export interface ResourceMetadataOptions {
  /** Path of the route. */
  readonly path: string;
  /** What clients type to reach the gateway, without a slash at the end; undefined: what their requests say. */
  readonly publicUrl: string | undefined;
  readonly backend: BackendMetadata;
}

/**
 * The protected resource metadata of a route: what the backend says of itself, in the name by which the client knows it.
 * Clients refuse metadata of another resource than the one that they have asked for (RFC 9728, section 3.3).
 */
export class ResourceMetadata {
  readonly #path: string;
  readonly #publicUrl: string | undefined;
  readonly #backend: BackendMetadata;

  constructor({ path, publicUrl, backend }: ResourceMetadataOptions) {
    this.#path = path === '/' ? '' : path.replace(/\/$/, '');
    this.#publicUrl = publicUrl;
    this.#backend = backend;
  }

  /** Paths at which the document is served: also that for a public URL whose path is taken off on the way here. */
  get places(): readonly string[] {
    const prefix = this.#publicUrl === undefined ? '' : new URL(this.#publicUrl).pathname.replace(/\/$/, '');
    return [...new Set([`${WELL_KNOWN}${this.#path}`, `${WELL_KNOWN}${prefix}${this.#path}`])];
  }

  /**
   * The document for a client, as JSON text; undefined when the backend has none.
   * @param host that the client has asked
   * @param slash whether it puts a slash at the end of the path
   * @throws MetadataUnavailable
   */
  document(host: string, slash: boolean): Promise<Buffer | undefined> {
    return this.#backend.document(this.#resource(host, slash));
  }

  /** A challenge of the backend, with the metadata where the client finds it. A URL that is not the backend's stays. */
  challenge(header: string, { url = '', headers: { host = '' } }: IncomingMessage): string {
    return changeResourceMetadata(header, (metadata) => {
      if (!this.#backend.learn(metadata)) return undefined;
      const [path = ''] = url.split('?', 1);
      const resource = this.#resource(host, path.endsWith('/'));
      if (!URL.canParse(resource)) return undefined;
      const { origin, pathname } = new URL(resource);
      return `${origin}${WELL_KNOWN}${pathname === '/' ? '' : pathname}`;
    });
  }

  #resource(host: string, slash: boolean): string {
    return `${this.#publicUrl ?? `http://${host}`}${this.#path}${slash ? '/' : ''}`;
  }
}
