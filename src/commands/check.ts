import { parseArgs } from 'node:util';
import { type Config, formatDuration, loadConfig, type RouteConfig } from '../config/index.js';
import { backendName } from '../routes/backend-name.js';
import { type CommandContext, EXIT, UsageError } from './context.js';
import { table } from './text.js';

/**
 * `eragate check FILE`: prints the routes and the warnings of a gateway file.
 *
 * @throws ConfigError
 */
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
    ...(timeouts.streamMs === 0 ? [] : [`stream ${formatDuration(timeouts.streamMs)}`]),
  ];
  return [path, nameOf(backend), backend.era, backend.leg, sessions.isolation, waits.join(', ')];
}

/** Programs that run other programs, which are named by the first argument that is not an option. */
const LAUNCHERS =
  /^(npx|npm|pnpm|pnpx|yarn|bun|bunx|deno|node|tsx|uv|uvx|pipx|python[\d.]*|docker|podman|java|dotnet|ruby|php)(\.\w+)?$/;
const OPTION = /^(-[A-Za-z]{1,2}|--yes|--quiet|--silent)$/;
const WORD = /^[@\w./~][\w./~-]*(@[\w.-]+)?$/;

/** The backend; for a launcher with the program that it runs. Other arguments may be secrets and are not shown. */
function nameOf(backend: RouteConfig['backend']): string {
  const name = backendName(backend);
  const args = backend.command?.args ?? [];
  const at = args.findIndex((arg) => !OPTION.test(arg));
  if (at === -1 || !LAUNCHERS.test(name) || !WORD.test(args[at] as string)) return name;
  return [name, ...args.slice(0, at + 1), ...(at + 1 < args.length ? ['…'] : [])].join(' ');
}
