// Python FastMCP's proxy server, as its documentation has it, with the era of the backend pinned.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pythonPackage } from './install.mjs';

const VERSION = '4.2.3';
const SCRIPT = fileURLToPath(new URL('fastmcp-proxy.py', import.meta.url));
const MODES = { L: 'legacy', M: '2026-07-28' };
let bin;

export const fastmcp = {
  name: 'FastMCP proxy (Python)',
  slow: true,
  cells: ['LL', 'LM', 'ML', 'MM'],
  async prepare() {
    bin = await pythonPackage(`fastmcp==${VERSION}`);
    return VERSION;
  },
  start({ port, backend, cell, spawn }) {
    return spawn(join(bin, 'python'), [SCRIPT, `${backend}/mcp`, port, MODES[cell[1]]]);
  },
};
