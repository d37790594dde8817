import type { RpcReply } from '../../../upstream/rpc-call.js';
import type { SessionCall } from './calls-in-flight.js';

/**
 * The `tasks/result` of a task. It stays open until the end of the task, and carries the server's requests until then
 * (2025-11-25, basic/utilities/tasks, "Input Required Status"). Some servers do not wait, and refuse it before the end.
 */
export class TaskResult {
  readonly #send: () => SessionCall;
  readonly #onReply: (reply: RpcReply) => void;
  readonly #ignoreFailure: (error: unknown) => undefined;
  #call: SessionCall | undefined;
  #fetching: Promise<void> | undefined;

  /**
   * @param send sends the request
   * @param onReply called with its reply; may throw
   * @param ignoreFailure the catch of promises that nobody awaits
   */
  constructor(
    send: () => SessionCall,
    onReply: (reply: RpcReply) => void,
    ignoreFailure: (error: unknown) => undefined,
  ) {
    this.#send = send;
    this.#onReply = onReply;
    this.#ignoreFailure = ignoreFailure;
  }

  /** Sends the request if it is not open; does not wait for it. A failure shows when the task is next looked at. */
  open(): void {
    this.#fetch().catch(this.#ignoreFailure);
  }

  /**
   * Fetches the result of a task that is in a final state, and waits for it until its time is over.
   * @param received whether the result is there
   * @throws what `onReply` throws
   */
  async fetchWithin(ms: number, received: () => boolean): Promise<void> {
    // A request that was open already may have been refused while the task was still running.
    const fetched = this.#fetch().then(() => (received() ? undefined : this.#fetch()));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        fetched.catch(this.#ignoreFailure);
        resolve();
      }, ms).unref();
    });
    await Promise.race([fetched, late]).finally(() => clearTimeout(timer));
  }

  abort(reason: string): void {
    this.#call?.rpc.abort(reason);
  }

  #fetch(): Promise<void> {
    this.#fetching ??= this.#request().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #request(): Promise<void> {
    this.#call = this.#send();
    const reply = await this.#call.done;
    this.#call = undefined;
    this.#onReply(reply);
  }
}
