import type { FastifyInstance, FastifyReply } from 'fastify';
import { MetadataUnavailable, WELL_KNOWN } from '../authorization/backend-metadata.js';
import type { ResourceMetadata } from '../authorization/resource-metadata.js';
import { sendError, serveDocument } from './document.js';
import type { Endpoint } from './endpoint.js';
import { HOST_MALFORMED, METADATA_UNAVAILABLE, NO_METADATA } from './errors.js';

/** Serves the protected resource metadata of the routes, which clients read before they have a credential (RFC 9728). */
export function serveMetadata(fastify: FastifyInstance, endpoints: readonly Endpoint[]): void {
  for (const [url, metadata] of pathsOf(endpoints)) {
    serveDocument(fastify, url, async (request, reply) => {
      const { host } = request.raw.headers;
      if (host === undefined || !URL.canParse(`http://${host}`)) {
        sendError(reply, HOST_MALFORMED);
        return reply;
      }
      const [path = ''] = (request.raw.url ?? '').split('?', 1);
      await respond(reply, () => metadata.document(host, path));
      return reply;
    });
  }
}

/** The metadata by path. Two routes may share a path: it belongs to the one that it names without the public path. */
function pathsOf(endpoints: readonly Endpoint[]): ReadonlyMap<string, ResourceMetadata> {
  const all = endpoints.flatMap(({ metadata }) => metadata ?? []);
  const paths = new Map<string, ResourceMetadata>();
  const add = (path: string | undefined, metadata: ResourceMetadata): void => {
    if (path !== undefined && !paths.has(path)) paths.set(path, metadata);
  };
  for (const index of [0, 1]) for (const metadata of all) add(metadata.paths[index], metadata);
  const [only, ...others] = endpoints;
  if (only?.metadata !== undefined && others.length === 0) add(WELL_KNOWN, only.metadata);
  return paths;
}

async function respond(reply: FastifyReply, find: () => Promise<Buffer | undefined>): Promise<void> {
  try {
    const document = await find();
    if (document === undefined) {
      sendError(reply, NO_METADATA);
      return;
    }
    reply.header('content-type', 'application/json').header('cache-control', 'no-store').send(document);
  } catch (error) {
    if (!(error instanceof MetadataUnavailable)) throw error;
    sendError(reply, METADATA_UNAVAILABLE);
  }
}
