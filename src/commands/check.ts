import { parseArgs } from 'node:util';
import { type Config, formatDuration, loadConfig, type RouteConfig } from '../config/index.js';
import { backendName } from '../routes/transport.js';
import { type CommandContext, EXIT, UsageError } from './context.js';
import { table } from './text.js';

/** `eragate check FILE`: prints the routes that would run and the warnings. Throws ConfigError. */
export async function runCheck(args: string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: 'string', short: 'c' } },
  });
  const files = [...positionals, ...(values.config === undefined ? [] : [values.config])];
  const [file] = files;
  if (file === undefined || files.length > 1) throw new UsageError('check needs one gateway file');
  const config = loadConfig(file, context.env);
  context.stdout(describe(file, config));
  return EXIT.ok;
}

function describe(file: string, config: Config): string {
  const { host, port } = config.listen;
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const count = config.routes.length === 1 ? '1 route' : `${config.routes.length} routes`;
  const rows = [['PATH', 'BACKEND', 'ERA', 'LEG', 'ISOLATION', 'TIMEOUTS'], ...config.routes.map(rowOf)];
  const warnings = config.warnings.map((warning) => `warning: ${warning}\n`).join('');
  return `${file}: ${count} on ${authority}\n\n${table(rows)}${warnings === '' ? '' : `\n${warnings}`}`;
}

function rowOf({ path, backend, sessions, timeouts }: RouteConfig): string[] {
  const waits = [
    `connect ${formatDuration(timeouts.connectMs)}`,
    `probe ${formatDuration(timeouts.probeMs)}`,
    `idle ${formatDuration(timeouts.idleMs)}`,
    `total ${formatDuration(timeouts.totalMs)}`,
  ];
  return [path, backendName(backend), backend.era, backend.leg, sessions.isolation, waits.join(', ')];
}
