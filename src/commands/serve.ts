import { parseArgs } from 'node:util';
import closeWithGrace from 'close-with-grace';
import { loadConfig } from '../config/index.js';
import type { Gateway } from '../gateway.js';
import { createLogger } from '../telemetry/logger.js';
import { type CommandContext, EXIT, UsageError } from './context.js';

/** Container runtimes kill ten seconds after SIGTERM; whatever is left by then is cut off here, and cleanly. */
const CLOSE_BOUND_MS = 9000;

/** After one of these the process is broken, and a handler in JavaScript would only hide it. */
const FATAL_SIGNALS = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'] as const;

/**
 * `eragate [serve] --config FILE`: starts the gateway and returns; the process ends with a signal. Throws ConfigError,
 * and whatever keeps the gateway from listening.
 */
export async function runServe(args: string[], context: CommandContext): Promise<number> {
  const { values } = parseArgs({ args, options: { config: { type: 'string', short: 'c' } } });
  if (values.config === undefined) throw new UsageError('serve needs --config FILE');
  const config = loadConfig(values.config, context.env);
  const { log, exchanges, flush } = createLogger(config.log.level);
  for (const warning of config.warnings) log.warn(warning);
  const gateway = await context.createGateway(config, { log, exchanges });
  const grace = closeWithGrace(
    {
      delay: CLOSE_BOUND_MS + 500,
      logger: { error: (what: unknown) => log.error(what) },
      skip: [...FATAL_SIGNALS],
    },
    async ({ signal, err }) => {
      if (err) log.fatal({ err }, 'closing after an error that nobody caught');
      else log.info({ signal }, 'closing');
      if (await closedInTime(gateway)) log.info('closed');
      else log.warn(`not closed within ${CLOSE_BOUND_MS / 1000} s, what was in flight is cut off`);
      flush();
    },
  );
  try {
    const url = await gateway.listen();
    log.info({ url, routes: config.routes.map(({ path }) => path) }, `listening on ${url}`);
    return EXIT.ok;
  } catch (error) {
    grace.uninstall();
    // Why it does not listen matters more than what then fails to close.
    await closedInTime(gateway).catch(() => false);
    throw error;
  }
}

async function closedInTime(gateway: Gateway): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, CLOSE_BOUND_MS, false);
  });
  try {
    return await Promise.race([gateway.close().then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
