/** Limit of the responses that are sent to a server at a time. */
const MAX_IN_FLIGHT = 64;
/** Limit of the responses that wait; further ones are dropped. */
const MAX_QUEUED = 1_024;

/** Responses to the requests of one server: bounded, so that a server cannot make the gateway hold any number of them. */
export class ResponseQueue {
  #inFlight = 0;
  readonly #queue: (() => void)[] = [];

  /**
   * @param send sends the response
   * @param onSent called with what the server made of it
   */
  push<T>(send: () => Promise<T>, onSent?: (reply: T) => void): void {
    const start = (): void => {
      this.#inFlight++;
      const sent = send().finally(() => {
        this.#inFlight--;
        this.#queue.shift()?.();
      });
      void sent.then(onSent);
    };
    if (this.#inFlight < MAX_IN_FLIGHT) start();
    else if (this.#queue.length < MAX_QUEUED) this.#queue.push(start);
  }
}
