// The MCP server behind every proxy that calls of a tool are measured on. Forked by the bench, tells its port over IPC.

import { serve } from './answering.mjs';
import { RESULTS } from './messages.mjs';

serve({ resultsAt: () => RESULTS });
