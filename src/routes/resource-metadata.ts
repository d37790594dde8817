import { BackendMetadata } from '../authorization/backend-metadata.js';
import { ResourceMetadata } from '../authorization/resource-metadata.js';
import type { RouteConfig } from '../config/index.js';

/** The resource metadata of a route; undefined where it forwards no credentials, so that no client needs any. */
export function openMetadata(
  route: RouteConfig,
  publicUrl: string | undefined,
): ResourceMetadata | undefined {
  const { url, hostHeader, headers, authorization } = route.backend;
  if (url === undefined || authorization === 'drop') return undefined;
  const backend = new BackendMetadata({ url, hostHeader, headers, timeoutMs: route.timeouts.probeMs });
  return new ResourceMetadata({ path: route.path, publicUrl, backend });
}
