import type { Caller } from '../../../exchange/caller.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import { LOG_LEVELS, type LogLevel } from '../../../exchange/log-levels.js';
import type { BackendSession } from './session.js';
import type { SetUp } from './session-setup.js';

/** Log messages are asked for per session; a shared one gets the most talkative level that any call asked for. */
export class LogLevels {
  readonly #setUp: SetUp;
  readonly #levels = new WeakMap<BackendSession, LogLevel>();

  constructor(setUp: SetUp) {
    this.#setUp = setUp;
  }

  /** Sees to it that a session tells of at least this much. A call does not fail for want of log messages. */
  async raise(session: BackendSession, logLevel: LogLevel, caller: Caller): Promise<void> {
    if (!session.info.capabilities.includes('"logging"')) return;
    const current = this.#levels.get(session);
    if (current !== undefined && LOG_LEVELS.indexOf(current) <= LOG_LEVELS.indexOf(logLevel)) return;
    this.#levels.set(session, logLevel);
    // What is wrong with the session the call will find out itself.
    const asked = this.#setUp.ask(session, 'logging/setLevel', { level: logLevel }, caller.forwarded);
    await asked.catch((error) => {
      this.#levels.delete(session);
      ignoreFailure(error);
    });
  }
}
