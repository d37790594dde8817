import { parseArgs } from 'node:util';
import { parseDuration } from '../config/units.js';
import type { ProbeReport } from '../routes/probe-report.js';
import { type CommandContext, EXIT, UsageError } from './context.js';
import { printable, table } from './text.js';

/** `eragate probe URL` or `probe -- PROGRAM ARGS`: prints what is found out about a server. Fails if its era is unknown. */
export async function runProbe(args: string[], context: CommandContext): Promise<number> {
  const end = args.indexOf('--');
  const command = end === -1 ? undefined : args.slice(end + 1);
  const { values, positionals } = parseArgs({
    args: end === -1 ? args : args.slice(0, end),
    allowPositionals: true,
    options: {
      json: { type: 'boolean', default: false },
      timeout: { type: 'string', default: '5s' },
      header: { type: 'string', multiple: true, default: [] },
    },
  });
  const target = command ?? urlOf(positionals);
  if (command !== undefined && (command.length === 0 || positionals.length > 0 || values.header.length > 0))
    throw new UsageError('probe needs a program after --, and neither URL nor headers before it');
  const timeoutMs = parseDuration(values.timeout);
  if (timeoutMs === undefined) throw new UsageError('--timeout is a duration such as 500ms or 5s');
  const report = await context.probeServer(target, { timeoutMs, headers: parseHeaders(values.header) });
  context.stdout(values.json ? `${JSON.stringify(report, null, 2)}\n` : describe(report));
  return report.era === 'unknown' ? EXIT.failed : EXIT.ok;
}

function urlOf(positionals: readonly string[]): string {
  const [url] = positionals;
  if (url === undefined || positionals.length > 1) throw new UsageError('probe needs one URL');
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw new UsageError('probe needs an http or https URL');
  return url;
}

function parseHeaders(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*)$/.exec(line) ?? [];
    // The line is not in the message, since it may contain a token.
    if (name === undefined || value === undefined)
      throw new UsageError("--header is of the form 'Name: value'");
    headers[name.toLowerCase()] = value;
  }
  return headers;
}

function describe(report: ProbeReport): string {
  const { serverInfo, capabilities } = report;
  const rows: [string, string | undefined][] = [
    ['url', report.url],
    ['command', report.command?.join(' ')],
    ['era', report.era],
    ['transport', report.transport],
    ['revisions', report.revisions.join(', ') || undefined],
    ['server', serverInfo && `${serverInfo.name} ${serverInfo.version}`],
    ['capabilities', capabilities && (Object.entries(capabilities).map(capabilityText).join(', ') || 'none')],
    ['sessions', report.sessions],
    ...report.reasons.map((reason, i): [string, string] => [i === 0 ? 'because' : '', reason]),
  ];
  return table(rows.flatMap(([name, text]) => (text === undefined ? [] : [[name, printable(text)]])));
}

/** `resources (subscribe, listChanged)`: a capability with its members that are not false. */
function capabilityText([name, value]: [string, unknown]): string {
  const parts = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  const on = parts.filter(([, part]) => part !== false).map(([part]) => part);
  return on.length === 0 ? name : `${name} (${on.join(', ')})`;
}
