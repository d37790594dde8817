// The dual-era gateway that can be put together from npm: mcp-proxy serves both eras over HTTP in front of a stdio server,
// and mcp-remote is a stdio server in front of an HTTP one, of either era.

import { join } from 'node:path';
import { npmPackages } from './install.mjs';

const VERSIONS = { 'mcp-proxy': '6.7.19', 'mcp-remote': '0.15.1' };
let modules;

export const chain = {
  name: 'mcp-proxy + mcp-remote',
  cells: ['LL', 'LM', 'ML', 'MM'],
  limit: 'no questions of the server to the client, no Mcp-Param headers',
  async prepare() {
    modules = await npmPackages(...Object.entries(VERSIONS).map(([name, version]) => `${name}@${version}`));
    return Object.values(VERSIONS).join(' + ');
  },
  start({ port, backend, cell, spawn }) {
    const front = [
      join(modules, '.bin/mcp-proxy'),
      '--host',
      '127.0.0.1',
      '--port',
      port,
      '--server',
      'stream',
    ];
    const protocol = cell[1] === 'L' ? 'legacy' : 'auto';
    const remote = [join(modules, 'mcp-remote/dist/proxy.js'), `${backend}/mcp`];
    const how = ['--allow-http', '--transport', 'http-only', '--protocol', protocol];
    return spawn(process.execPath, [...front, '--', process.execPath, ...remote, ...how]);
  },
};
