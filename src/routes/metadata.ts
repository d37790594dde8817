import { BackendMetadata } from '../authorization/backend-metadata.js';
import { ResourceMetadata } from '../authorization/resource-metadata.js';
import type { RouteConfig } from '../config/index.js';

/** The metadata of a route; undefined where no credential of a client goes on, so that none could be told to get one. */
export function openMetadata(
  route: RouteConfig,
  publicUrl: string | undefined,
): ResourceMetadata | undefined {
  const { url, hostHeader, headers, authorization } = route.backend;
  if (url === undefined || authorization === 'drop') return undefined;
  const backend = new BackendMetadata({ url, hostHeader, headers, timeoutMs: route.timeouts.probeMs });
  return new ResourceMetadata({ path: route.path, publicUrl, backend });
}
