import { parseArgs } from 'node:util';
import closeWithGrace from 'close-with-grace';
import { formatDuration, loadConfig } from '../config/index.js';
import type { Gateway } from '../gateway.js';
import { createLogger } from '../telemetry/logger.js';
import { type CommandContext, EXIT, UsageError } from './context.js';

/**
 * Time limit of closing beside the delay and the grace of the configuration: container runtimes kill the process ten
 * seconds after SIGTERM, and the default grace is five.
 */
const CLOSE_LIMIT_MS = 4000;
/** Time limit of writing the last lines of the log: its reader may be stalled. */
const LOG_LIMIT_MS = 400;

/** Signals of a broken process, which a handler in JavaScript would only hide. */
const FATAL_SIGNALS = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'] as const;

/**
 * `eragate serve FILE`, or `eragate [serve] --config FILE`: starts the gateway and returns; the process runs until a signal ends it.
 *
 * @throws ConfigError, and the error of a gateway that cannot listen
 */
export async function runServe(args: string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: 'string', short: 'c' } },
  });
  const files = [...positionals, ...(values.config === undefined ? [] : [values.config])];
  const [file] = files;
  if (file === undefined || files.length > 1) throw new UsageError('serve needs one gateway file');
  const config = loadConfig(file, context.env);
  const { log, exchanges, close: closeLog } = createLogger(config.log.level);
  for (const warning of config.warnings) log.warn(warning);
  const gateway = await context.createGateway(config, { log, exchanges });
  const { delayMs, graceMs } = config.shutdown;
  const limitMs = delayMs + graceMs + CLOSE_LIMIT_MS;
  const grace = closeWithGrace(
    {
      delay: limitMs + 500,
      logger: { error: (what: unknown) => log.error(what) },
      skip: [...FATAL_SIGNALS],
    },
    async ({ signal, err }) => {
      if (err) log.fatal({ err }, 'closing after an uncaught error');
      else log.info({ signal }, 'closing');
      if (await closedInTime(gateway, limitMs)) log.info('closed');
      else log.warn(`not closed within ${formatDuration(limitMs)}, requests in flight are cut off`);
      await closeLog(LOG_LIMIT_MS);
    },
  );
  try {
    const url = await gateway.listen();
    log.info({ url, routes: config.routes.map(({ path }) => path) }, `listening on ${url}`);
    return EXIT.ok;
  } catch (error) {
    grace.uninstall();
    // An error of closing is ignored in favour of the error of listening.
    await closedInTime(gateway, limitMs).catch(() => false);
    await closeLog(LOG_LIMIT_MS);
    throw error;
  }
}

async function closedInTime(gateway: Gateway, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  try {
    return await Promise.race([gateway.close().then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
