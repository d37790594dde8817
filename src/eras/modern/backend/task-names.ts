import type { Params } from '../../../exchange/exchange.js';
import type { TaskLimits } from '../../../exchange/tasks.js';
import type { Sealer } from '../../../exchange/utils/sealer.js';
import type { Ticker } from '../../../exchange/utils/ticker.js';
import { getMember, stringOf } from '../../../jsonrpc/index.js';

export interface TaskNamesOptions extends TaskLimits {
  /** Path of the route that the tasks are on. */
  readonly route: string;
  readonly sealer: Sealer;
  readonly ticker: Ticker;
}

/** The target of a name: a task of the backend, or an immediate result that is kept under a number. */
type Named =
  | { readonly kind: 'task'; readonly id: string; readonly tool: string | undefined }
  | { readonly kind: 'kept'; readonly number: string };

export type KnownTask = Named & {
  /** The sealed name, which is the client's task id. */
  readonly name: string;
};

type Sealed = [owner: string, kind: Named['kind'], id: string, tool: string | null];

/**
 * Sealed names of tasks, which clients of this route get as task ids. A name is valid for the caller that received it
 * only, in any process with the same key.
 */
export class TaskNames {
  readonly #sealer: Sealer;
  readonly #purpose: string;

  constructor({ sealer, route }: Pick<TaskNamesOptions, 'sealer' | 'route'>) {
    this.#sealer = sealer;
    this.#purpose = `session task ${route}`;
  }

  /** @param owner identity of the caller, see `identityOf` */
  seal(owner: string, named: Named): string {
    const sealed: Sealed =
      named.kind === 'task'
        ? [owner, named.kind, named.id, named.tool ?? null]
        : [owner, named.kind, named.number, null];
    return this.#sealer.seal(this.#purpose, JSON.stringify(sealed));
  }

  /** The task that a request names; undefined for an invalid name, and for that of another caller. */
  open({ bytes, node }: Params, caller: string): KnownTask | undefined {
    const name = node === undefined ? undefined : stringOf(bytes, getMember(bytes, node, 'taskId'));
    const content = name === undefined ? undefined : this.#sealer.open(this.#purpose, name);
    if (name === undefined || content === undefined) return undefined;
    const [owner, kind, id, tool] = JSON.parse(content) as Sealed;
    if (owner !== caller) return undefined;
    return kind === 'task' ? { kind, id, tool: tool ?? undefined, name } : { kind, number: id, name };
  }
}
