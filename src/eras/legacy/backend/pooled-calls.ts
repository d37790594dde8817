import type { Exchange } from '../../../exchange/exchange.js';
import type { Outcome } from '../../../exchange/outcome.js';
import { abortable } from '../../../exchange/utils/abortable.js';
import type { NotificationFrame } from '../../../jsonrpc/index.js';
import { accepts } from './credential-check.js';
import { LegacyCall } from './legacy-call.js';
import { LogLevels } from './log-levels.js';
import type { PooledSessions } from './pooled-sessions.js';
import { mustRepeat } from './repeat.js';
import { outcomeOf } from './replies.js';
import type { Roots } from './roots.js';
import type { Lease } from './session-lease.js';
import type { LegacyTasks } from './tasks.js';

export interface PooledCallsOptions {
  readonly sessions: PooledSessions;
  readonly roots: Roots;
  readonly tasks: LegacyTasks;
  /** How long results may be kept, by method. */
  readonly ttlMs: ReadonlyMap<string, number>;
}

/** The calls of clients without a session, on sessions that the gateway holds for them. */
export class PooledCalls {
  readonly #options: PooledCallsOptions;
  readonly #levels = new LogLevels();

  constructor(options: PooledCallsOptions) {
    this.#options = options;
  }

  async call(exchange: Exchange): Promise<Outcome> {
    const { sessions } = this.#options;
    const { method } = exchange.request;
    for (let attempt = 0; ; attempt++) {
      const lease =
        sessions.tryAcquire(exchange.caller, method) ??
        (await sessions.acquire(exchange.caller, { method, signal: exchange.signal }));
      const outcome = await this.#attempt(exchange, lease, attempt);
      if (outcome !== undefined) return outcome;
    }
  }

  /**
   * Sends the request on a session and releases the lease, unless a task goes on with it.
   * @returns undefined if the request is to be sent again on another session
   */
  async #attempt(exchange: Exchange, lease: Lease, attempt: number): Promise<Outcome | undefined> {
    const { sessions, roots, tasks, ttlMs } = this.#options;
    const { session } = lease;
    exchange.notes.session = session.id === undefined ? 'none' : lease.use;
    const onChange = (frame: NotificationFrame): void => sessions.publish(exchange.caller, frame);
    const call = new LegacyCall(exchange, session, roots, onChange);
    let kept = false;
    let reserved: Disposable | undefined;
    let attached: Disposable | undefined;
    try {
      const { logLevel, forwarded } = exchange.caller;
      if (logLevel !== undefined)
        await abortable(exchange.signal, this.#levels.include(session, logLevel, forwarded));
      if (lease.use !== 'shared') {
        const opening = session.getStreamSettled();
        if (opening !== undefined) await abortable(exchange.signal, opening);
        reserved = session.reserveFor(call);
        attached = exchange.attach({
          onParked: () => lease.park(),
          onUnparked: () => lease.unpark(),
          tryCredentials: (renewed) => accepts(session, renewed),
        });
      }
      const asTask =
        tasks.supports(session) && (await abortable(exchange.signal, tasks.shouldRun(exchange, session)));
      const end = asTask ? await tasks.run(exchange, { lease, call, onChange }) : { reply: await call.run() };
      if ('outcome' in end) {
        kept = end.kept;
        return end.outcome;
      }
      if (await mustRepeat(end.reply, session, attempt, exchange)) return undefined;
      return outcomeOf(exchange, session, end.reply, ttlMs);
    } finally {
      attached?.[Symbol.dispose]();
      if (!kept) {
        reserved?.[Symbol.dispose]();
        lease.release();
      }
    }
  }
}
