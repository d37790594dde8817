// Python environments that several peers share.
import { pip } from './install.mjs';

/** The two of the tests of this repository. */
export const PYTHON_1 = pip('1', { mcp: '1.29.0', fastmcp: '3.4.5' });
export const PYTHON_2 = pip('2', { mcp: '2.3.0' });
export const FASTMCP_4 = pip('fastmcp-4', {
  fastmcp: '4.2.3',
  mcp: '2.3.0',
  'mcp-server-motherduck': '1.1.0',
});
