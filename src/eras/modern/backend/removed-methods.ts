import type { Caller } from '../../../exchange/caller.js';
import type { ClientSession } from '../../../exchange/client-session.js';
import { EXCHANGE_ERRORS } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { ServerDescription } from '../../../exchange/outbound.js';
import { gatewayError, type Outcome, ownResult } from '../../../exchange/outcome.js';
import { abortable } from '../../../exchange/utils/abortable.js';
import { getMember, scanJson, stringOf } from '../../../jsonrpc/index.js';
import { InputFailed } from '../wire/input-requests.js';
import { NAMED_BY, REMOVED_METHODS } from '../wire/names.js';
import { inputError } from './ask-input.js';
import { MODERN_BACKEND_ERRORS } from './errors.js';
import type { ModernBackend } from './modern-backend.js';
import type { ModernSessionBinding } from './session-binding.js';

export interface RemovedMethodsOptions {
  readonly backend: ModernBackend;
  readonly describe: (caller: Caller, signal: AbortSignal) => Promise<ServerDescription>;
  readonly bindingOf: (session: ClientSession, caller: Caller) => ModernSessionBinding;
}

/** Carries out requests of legacy clients whose methods this era does not have. */
export class RemovedMethods {
  readonly #options: RemovedMethodsOptions;

  constructor(options: RemovedMethodsOptions) {
    this.#options = options;
  }

  /** The outcome of a request that the backend is not sent; undefined for any other request. */
  async outcomeOf(exchange: Exchange): Promise<Outcome | undefined> {
    const { method } = exchange.request;
    if (method.startsWith('tasks/')) {
      const { descriptions } = this.#options.backend;
      return (await abortable(exchange.signal, descriptions.makesTasks(exchange.caller)))
        ? this.#ofTask(exchange)
        : unknownMethod(method);
    }
    if (!REMOVED_METHODS.has(method)) return unnamed(exchange);
    if (method === 'resources/subscribe' || method === 'resources/unsubscribe')
      return this.#subscribe(exchange);
    if (method === 'logging/setLevel') {
      // The level is in `_meta` of each further request of the session.
      const { capabilities } = await this.#options.describe(exchange.caller, exchange.signal);
      if ('logging' in (JSON.parse(capabilities) as object)) return emptyResult();
    }
    return unknownMethod(method);
  }

  async #ofTask(exchange: Exchange): Promise<Outcome> {
    try {
      return await this.#options.backend.tasks.answer(exchange);
    } catch (error) {
      if (error instanceof InputFailed) return inputError(error);
      throw error;
    }
  }

  /** Changes the subscriptions of a session, whose client receives changes on its standalone GET stream. */
  async #subscribe({ request, caller, signal }: Exchange): Promise<Outcome> {
    const { bytes, node } = request.params;
    const uri = node === undefined ? undefined : stringOf(bytes, getMember(bytes, node, 'uri'));
    if (uri === undefined || caller.session === undefined)
      return gatewayError(EXCHANGE_ERRORS.ERAGATE_INVALID_PARAMS, { problem: 'params.uri must be a string' });
    const binding = this.#options.bindingOf(caller.session, caller);
    if (request.method === 'resources/unsubscribe') await abortable(signal, binding.unsubscribe(uri));
    else if (!(await abortable(signal, binding.subscribe(uri))))
      return gatewayError(MODERN_BACKEND_ERRORS.ERAGATE_NOT_SUBSCRIBABLE, { uri });
    return emptyResult();
  }
}

/** The error for a request without the member that the `Mcp-Name` header repeats; undefined if it has the member. */
function unnamed({ request: { method, name } }: Exchange): Outcome | undefined {
  const key = name === undefined ? NAMED_BY.get(method) : undefined;
  return key === undefined
    ? undefined
    : gatewayError(EXCHANGE_ERRORS.ERAGATE_INVALID_PARAMS, { problem: `params.${key} must be a string` });
}

function unknownMethod(method: string): Outcome {
  return gatewayError(EXCHANGE_ERRORS.ERAGATE_METHOD_NOT_FOUND, { method });
}

const EMPTY = Buffer.from('{}');

function emptyResult(): Outcome {
  return ownResult(EMPTY, scanJson(EMPTY, 1));
}
