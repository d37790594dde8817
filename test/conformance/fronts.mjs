// What stands between the suite and the fixture servers.

import { LM_ROUTE } from '../fronts/eragate.mjs';
import { startFront } from '../fronts/start.mjs';
import { startGateway } from './gateway.mjs';
import { startRelay } from './relay.mjs';

/** The gateway, which finds out by itself what is behind it. */
export const gateway = {
  label: 'server',
  cells: ['LL', 'LM', 'ML', 'MM'],
  async open(cell, url, folder) {
    const route = { backend: { url }, ...(cell === 'LM' ? LM_ROUTE : {}) };
    const { url: at, close } = await startGateway({ '/mcp': route }, folder);
    return { url: at('/mcp'), close };
  },
};

const renaming = (pairs) => (text) =>
  pairs.reduce((changed, [from, to]) => changed.replaceAll(JSON.stringify(from), JSON.stringify(to)), text);

/**
 * One of the FRONTS. The suite knows neither tokens nor other names than those of the fixtures, so a relay stands before
 * those that want them.
 */
export const frontForSuite = (front) => ({
  label: front.name,
  cells: front.cells,
  async open(cell, url, folder) {
    const { origin, path, headers, names, close } = await startFront(
      front,
      cell,
      new URL(url).origin,
      folder,
    );
    if (Object.keys(headers).length === 0 && names.size === 0) return { url: origin + path, close };
    const pairs = [...names];
    const relay = await startRelay(origin + path, {
      headers: (sent) => Object.assign(sent, headers),
      body: renaming(pairs),
      answer: renaming(pairs.map(([name, theirs]) => [theirs, name])),
    });
    return {
      url: relay.url,
      async close() {
        relay.close();
        await close();
      },
    };
  },
});
