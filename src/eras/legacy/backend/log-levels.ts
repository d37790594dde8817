import { ignoreFailure } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { LOG_LEVELS, type LogLevel } from '../../../exchange/log-levels.js';
import type { BackendSession } from './session.js';
import { configure } from './session-setup.js';

/** The log levels of pooled sessions. In this era a level is set per session: calls that share one get the lowest. */
export class LogLevels {
  readonly #levels = new WeakMap<BackendSession, LogLevel>();

  /** Makes a session log from this level on, at least. Never fails: a call is not refused for its log messages. */
  async include(session: BackendSession, level: LogLevel, forwarded: ForwardedHeaders): Promise<void> {
    if (!session.info.capabilities.includes('"logging"')) return;
    const current = this.#levels.get(session);
    if (current !== undefined && LOG_LEVELS.indexOf(current) <= LOG_LEVELS.indexOf(level)) return;
    this.#levels.set(session, level);
    // If the session is lost, the call will find out.
    await configure(session, 'logging/setLevel', { level }, forwarded).catch((error) => {
      this.#levels.delete(session);
      ignoreFailure(error);
    });
  }
}
