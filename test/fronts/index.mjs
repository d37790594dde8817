// What can stand in front of a server: the gateway, and what one would put there instead. The bench measures what they cost
// (npm run bench -- --peers), the conformance suite what they do right (npm run conformance -- --peers).

import { agentgateway } from './agentgateway.mjs';
import { chain } from './chain.mjs';
import { contextforge } from './contextforge.mjs';
import { eragate } from './eragate.mjs';
import { fastmcp } from './fastmcp.mjs';
import { httpProxy } from './http-proxy.mjs';
import { nginx } from './nginx.mjs';

/**
 * Each has a `name`, the `cells` that it can do, a `limit` in words, `slow` if a request takes it milliseconds, and
 *
 * - `prepare()`, which installs it where that can be done, and gives its version. @throws where it is not to be had
 * - `start({ backend, cell, port, folder, spawn })`, which starts it on that port in front of an origin with an MCP endpoint
 *   at /mcp. It gives the process, or `{ child, pid, origin }`; with `access` where clients do not call /mcp as it is: a
 *   `path`, `headers` that they have to send, and `names` (a Map from the backend's names of tools and prompts to its own).
 */
export const FRONTS = [eragate, nginx, httpProxy, agentgateway, chain, fastmcp, contextforge];

/** Whether a front has `only` in its name. */
export const named =
  (only) =>
  ({ name }) =>
    name.toLowerCase().includes(only.toLowerCase());
