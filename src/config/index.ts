export { loadConfig, parseConfig } from './load.js';
export { ConfigError, type ConfigProblem, formatProblem } from './problems.js';
export type * from './types.js';
export { CONFIG_REVISIONS } from './types.js';
export { formatDuration } from './units.js';
