// agentgateway, which comes as a binary that no package manager here knows: one that is on the PATH, or that the variable
// AGENTGATEWAY_BIN names. It multiplexes servers, of which it has one here, and has each talk the era that its client began with.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { versionOnPath } from './install.mjs';

const program = process.env.AGENTGATEWAY_BIN ?? 'agentgateway';

export const agentgateway = {
  name: 'agentgateway',
  cells: ['LL', 'MM'],
  limit: 'one era only',
  async prepare() {
    try {
      return await versionOnPath(program, '-V');
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
      throw new Error(`there is no ${program}; AGENTGATEWAY_BIN can name it`);
    }
  },
  async start({ folder, port, backend, spawn }) {
    const file = join(folder, 'config.yaml');
    const config = {
      config: { adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off' },
      mcp: {
        port,
        dnsRebindingProtection: true,
        targets: [{ name: 'bench', mcp: { host: `${backend}/mcp` } }],
      },
    };
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(config));
    return spawn(program, ['-f', file]);
  },
};
