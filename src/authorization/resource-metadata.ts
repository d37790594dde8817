import type { IncomingMessage } from 'node:http';
import { type BackendMetadata, WELL_KNOWN } from './backend-metadata.js';
import { changeResourceMetadata } from './challenge.js';

export interface ResourceMetadataOptions {
  /** Path of the route. */
  readonly path: string;
  /** URL of the gateway for clients, without a slash at the end; default from the `Host` of each request. */
  readonly publicUrl: string | undefined;
  readonly backend: BackendMetadata;
}

/**
 * The protected resource metadata of a route: the backend's, under the public name of the route. Clients refuse metadata
 * that names another resource than the one that they have requested (RFC 9728, section 3.3).
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

  /** Paths of the document: with and without the path of the public URL, which a proxy in front may remove. */
  get paths(): readonly string[] {
    const prefix = this.#publicUrl === undefined ? '' : new URL(this.#publicUrl).pathname.replace(/\/$/, '');
    return [...new Set([`${WELL_KNOWN}${this.#path}`, `${WELL_KNOWN}${prefix}${this.#path}`])];
  }

  /**
   * The document for a client, as JSON text; undefined when the backend has none.
   * @param host of the request
   * @param path of the request; a slash at its end is kept in the name
   * @throws MetadataUnavailable
   */
  document(host: string, path: string): Promise<Buffer | undefined> {
    return this.#backend.document(this.#resource(host, path));
  }

  /** Replaces the metadata URL in a challenge by that of the route. A URL that is not the backend's is kept. */
  challenge(header: string, { url = '', headers: { host = '' } }: IncomingMessage): string {
    return changeResourceMetadata(header, (metadata) => {
      if (!this.#backend.learn(metadata)) return undefined;
      const [path = ''] = url.split('?', 1);
      const resource = this.#resource(host, path);
      if (!URL.canParse(resource)) return undefined;
      const { origin, pathname } = new URL(resource);
      return `${origin}${WELL_KNOWN}${pathname === '/' ? '' : pathname}`;
    });
  }

  #resource(host: string, path: string): string {
    return `${this.#publicUrl ?? `http://${host}`}${this.#path}${path.endsWith('/') ? '/' : ''}`;
  }
}
