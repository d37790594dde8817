/** Runs the command that the arguments name, and reports an error as a message and an exit code. */

import { ConfigError } from '../config/index.js';
import { VERSION } from '../version.js';
import { runCheck } from './check.js';
import { type CommandContext, EXIT, UsageError } from './context.js';
import { runProbe } from './probe.js';
import { runServe } from './serve.js';

const HELP = `eragate: a gateway between MCP clients and MCP servers of any protocol revision

usage:
  eragate [serve] --config FILE       run the gateway; also: eragate serve FILE
  eragate check FILE                  check a gateway file and print its routes
  eragate probe URL [options]         print the era, the revisions and the capabilities of an MCP server
    --header 'Name: value'            send this header; can be repeated
    --timeout 5s                      time limit for each response
    --json                            print the report as JSON
  eragate probe [options] -- PROGRAM ARGS   the same for a server on stdio, which is started
  eragate --help | --version

exit codes: 0 success, 1 failure, 2 wrong command line
`;

type Command = (args: string[], context: CommandContext) => Promise<number>;

const COMMANDS: ReadonlyMap<string, Command> = new Map([
  ['serve', runServe],
  ['check', runCheck],
  ['probe', runProbe],
]);

/** Runs `args` (without node and script). Resolves with the exit code; a gateway that is served continues to run. */
export async function runCommandLine(args: readonly string[], context: CommandContext): Promise<number> {
  const end = args.indexOf('--');
  const own = end === -1 ? args : args.slice(0, end);
  if (own.includes('--help') || own.includes('-h') || args[0] === 'help') {
    context.stdout(HELP);
    return EXIT.ok;
  }
  if (args[0] === '--version' || args[0] === '-v') {
    context.stdout(`${VERSION}\n`);
    return EXIT.ok;
  }
  try {
    if (args[0] === undefined) throw new UsageError('no gateway file given');
    if (args[0].startsWith('-')) return await runServe([...args], context);
    const command = COMMANDS.get(args[0]);
    if (command === undefined) {
      throw new UsageError(
        `unknown command "${args[0]}", expected one of ${[...COMMANDS.keys()].join(', ')}`,
      );
    }
    return await command(args.slice(1), context);
  } catch (error) {
    return report(error, context);
  }
}

function report(error: unknown, context: CommandContext): number {
  if (error instanceof ConfigError) {
    const count = error.problems.length;
    context.stderr(`${error.message}\n${count === 1 ? '1 problem' : `${count} problems`}\n`);
    return EXIT.failed;
  }
  if (error instanceof UsageError || isParseArgsError(error)) {
    context.stderr(`eragate: ${error.message}\nTry: eragate --help\n`);
    return EXIT.usage;
  }
  context.stderr(`eragate: ${error instanceof Error ? error.message : String(error)}\n`);
  return EXIT.failed;
}

function isParseArgsError(error: unknown): error is Error {
  return error instanceof Error && String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS');
}
