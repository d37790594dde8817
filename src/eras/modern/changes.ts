import {
  type Change,
  type ChangeFilter,
  changeOf,
  isChange,
  isEmpty,
  LIST_CHANGE_KEYS,
  type ListChange,
  NO_CHANGES,
} from '../../exchange/changes.js';
import { badGateway } from '../../exchange/errors.js';
import type { Upstream, UpstreamListener } from '../../exchange/hub.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  type NotificationFrame,
  Rope,
  stringOf,
} from '../../jsonrpc/index.js';
import type { RpcCall, RpcListener } from '../../transports/rpc-call.js';

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** Resources in one filter. */
const MAX_RESOURCES = 1_000;

/** JSON text of a filter, as the value of `notifications`. */
export function filterText({ lists, resources }: ChangeFilter): string {
  const members: Record<string, unknown> = {};
  for (const key of LIST_CHANGE_KEYS) if (lists.has(key)) members[key] = true;
  if (resources.size > 0) members['resourceSubscriptions'] = [...resources];
  return JSON.stringify(members);
}

/** @returns what is wrong with a filter that is none */
export function readFilter(bytes: Buffer, node: JsonNode | undefined): ChangeFilter | string {
  if (node?.kind !== 'object') return 'params.notifications must be an object';
  const lists = new Set<ListChange>();
  for (const key of LIST_CHANGE_KEYS) {
    const value = getMember(bytes, node, key);
    if (value !== undefined && value.kind !== 'true' && value.kind !== 'false')
      return `params.notifications.${key} must be a boolean`;
    if (value?.kind === 'true') lists.add(key);
  }
  const uris = getMember(bytes, node, 'resourceSubscriptions');
  if (uris === undefined) return { lists, resources: new Set() };
  if (uris.kind !== 'array') return 'params.notifications.resourceSubscriptions must be an array';
  const resources = new Set<string>();
  for (const element of elementsOf(bytes, uris)) {
    const uri = stringOf(bytes, element);
    if (uri === undefined) return 'params.notifications.resourceSubscriptions must hold strings';
    resources.add(uri);
  }
  if (resources.size > MAX_RESOURCES)
    return `params.notifications.resourceSubscriptions must not hold more than ${MAX_RESOURCES}`;
  return { lists, resources };
}

/** Opens a `subscriptions/listen` stream to a backend. */
export type ListenOpener = (params: Rope, listener: RpcListener) => RpcCall;

/**
 * The changes that a modern backend tells of: on one `subscriptions/listen` stream. A new filter gets a new stream, and
 * the old one is closed once the new one is acknowledged; a stream that ends is opened again.
 */
export class ModernUpstream implements Upstream {
  readonly #open: ListenOpener;
  readonly #listener: UpstreamListener;
  readonly #ackMs: number;
  #stream: ListenStream | undefined;
  #wanted: ChangeFilter = NO_CHANGES;
  #pauseMs = FIRST_PAUSE_MS;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param ackMs the time that the backend has for its acknowledgement */
  constructor(open: ListenOpener, listener: UpstreamListener, ackMs: number) {
    this.#open = open;
    this.#listener = listener;
    this.#ackMs = ackMs;
  }

  async apply(filter: ChangeFilter): Promise<ChangeFilter> {
    this.#wanted = filter;
    clearTimeout(this.#timer);
    const older = this.#stream;
    const stream = new ListenStream(
      this.#open,
      filter,
      (change) => this.#listener.onChange(change),
      this.#ackMs,
    );
    const honoured = await stream.acknowledged;
    if (this.#closed) stream.close();
    else {
      this.#stream = stream;
      stream.onEnd(() => this.#ended(stream));
    }
    older?.close();
    return honoured;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#stream?.close();
  }

  #ended(stream: ListenStream): void {
    if (this.#stream !== stream || this.#closed || isEmpty(this.#wanted)) return;
    this.#timer = setTimeout(async () => {
      try {
        await this.apply(this.#wanted);
        this.#pauseMs = FIRST_PAUSE_MS;
        this.#listener.onGap();
      } catch {
        this.#ended(stream);
      }
    }, this.#pauseMs).unref();
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

/** One `subscriptions/listen` stream of a backend. */
class ListenStream implements RpcListener {
  /** What the backend agreed to; rejected when it refuses, or does not acknowledge in time. */
  readonly acknowledged: Promise<ChangeFilter>;
  readonly #rpc: RpcCall;
  readonly #onChange: (change: Change) => void;
  #acknowledge!: (filter: ChangeFilter) => void;
  #onEnd: (() => void) | undefined;
  #ended = false;

  constructor(open: ListenOpener, filter: ChangeFilter, onChange: (change: Change) => void, ackMs: number) {
    this.#onChange = onChange;
    this.#rpc = open(new Rope().push(filterText(filter)), this);
    this.acknowledged = new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(badGateway('the backend did not acknowledge the subscription in time', 504));
        this.close();
      }, ackMs);
      this.#acknowledge = (honoured) => {
        clearTimeout(timer);
        resolve(honoured);
      };
      this.#rpc.reply.then((reply) => {
        clearTimeout(timer);
        const said =
          reply.kind === 'answer' && reply.frame.type === 'error' ? `: ${reply.frame.message}` : '';
        reject(badGateway(`the backend refused or ended the subscription${said}`));
        this.#ended = true;
        this.#onEnd?.();
      });
    });
    this.acknowledged.catch(() => {});
  }

  /** Calls `listener` when the stream has ended by itself. */
  onEnd(listener: () => void): void {
    this.#onEnd = listener;
    if (this.#ended) listener();
  }

  close(): void {
    this.#onEnd = undefined;
    this.#rpc.abort('nobody listens any more');
  }

  onNotification(frame: NotificationFrame): undefined {
    const { method, bytes, params } = frame;
    if (method === ACKNOWLEDGED) {
      const filter = readFilter(
        bytes,
        params === undefined ? undefined : getMember(bytes, params, 'notifications'),
      );
      this.#acknowledge(typeof filter === 'string' ? NO_CHANGES : filter);
    } else if (isChange(method)) this.#onChange(changeOf(frame));
  }

  onRequest(): void {}
}
