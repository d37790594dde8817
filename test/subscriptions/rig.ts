import type { BackendStream } from '../support/backend.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import {
  type LegacyScript,
  type Script,
  type ScriptedBackend,
  startLegacyBackend,
  startModernBackend,
} from '../support/misbehave.js';
import { type Loose, sleep, until } from '../support/net.js';
import { type LegacySession, type ModernOptions, openModern, type RawStream } from '../support/raw.js';

export const TOOLS_CHANGED = 'notifications/tools/list_changed';
export const PROMPTS_CHANGED = 'notifications/prompts/list_changed';
export const RESOURCES_CHANGED = 'notifications/resources/list_changed';
export const UPDATED = 'notifications/resources/updated';
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** What a server declares that tells of everything. */
export const TELLS_ALL = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
};
/** A filter for all lists. */
export const ALL_LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };

export const updated = (uri: string) => ({ method: UPDATED, params: { uri } });

/** A scripted backend that tells of changes. */
export interface TellingBackend extends ScriptedBackend {
  /** Tells all who listen; a modern one, of what they asked for. */
  tell(method: string, params?: Loose): void;
  /** Open streams for changes. */
  listeners(): BackendStream[];
  /** Resources subscribed to now, with the times that each is; of a modern backend those of the open streams. */
  subscribed(): Record<string, number>;
}

/** A legacy backend that keeps subscriptions per session, and tells of changes on its GET streams. */
export async function startTellingLegacy(script: LegacyScript = {}): Promise<TellingBackend> {
  const subscriptions = new Map<string, Set<string>>();
  const of = (session = '') => {
    const known = subscriptions.get(session) ?? new Set();
    subscriptions.set(session, known);
    return known;
  };
  const backend = await startLegacyBackend({
    capabilities: TELLS_ALL,
    ...script,
    on: {
      'resources/subscribe': ({ params, session }) => {
        of(session).add(params.uri);
        return { result: {} };
      },
      'resources/unsubscribe': ({ params, session }) => {
        of(session).delete(params.uri);
        return { result: {} };
      },
      ...script.on,
    },
  });
  const open = () => backend.streams.filter(({ stream }) => !stream.closed).map(({ stream }) => stream);
  return {
    ...backend,
    forget() {
      subscriptions.clear();
      backend.forget();
    },
    tell(method, params) {
      for (const stream of open()) stream.event({ jsonrpc: '2.0', method, params });
    },
    listeners: open,
    subscribed() {
      const counts: Record<string, number> = {};
      for (const uris of subscriptions.values()) for (const uri of uris) counts[uri] = (counts[uri] ?? 0) + 1;
      return counts;
    },
  };
}

const LIST_OF: Record<string, string> = {
  [TOOLS_CHANGED]: 'toolsListChanged',
  [PROMPTS_CHANGED]: 'promptsListChanged',
  [RESOURCES_CHANGED]: 'resourcesListChanged',
};

/** A modern backend with `subscriptions/listen`; `refuse` says which resources it does not tell of. */
export async function startTellingModern(
  script: Script & { refuse?: (uri: string) => boolean } = {},
): Promise<TellingBackend & { filters(): Loose[] }> {
  const streams: { id: Loose; filter: Loose; stream: BackendStream }[] = [];
  const open = () => streams.filter(({ stream }) => !stream.closed);
  const { refuse, ...rest } = script;
  const backend = await startModernBackend({
    capabilities: TELLS_ALL,
    ...rest,
    on: {
      'subscriptions/listen': (step) => {
        const filter = { ...step.params.notifications };
        if (filter.resourceSubscriptions && refuse)
          filter.resourceSubscriptions = filter.resourceSubscriptions.filter((uri: string) => !refuse(uri));
        const stream = step.stream();
        streams.push({ id: step.id, filter, stream });
        const _meta = { [SUBSCRIPTION_ID]: step.id };
        stream.event({ jsonrpc: '2.0', method: ACKNOWLEDGED, params: { notifications: filter, _meta } });
        return undefined;
      },
      ...rest.on,
    },
  });
  return {
    ...backend,
    tell(method, params) {
      for (const { id, filter, stream } of open()) {
        const list = LIST_OF[method];
        const wanted =
          list === undefined ? filter.resourceSubscriptions?.includes(params?.uri) : filter[list] === true;
        const _meta = { [SUBSCRIPTION_ID]: id };
        if (wanted) stream.event({ jsonrpc: '2.0', method, params: { ...params, _meta } });
      }
    },
    listeners: () => open().map(({ stream }) => stream),
    subscribed() {
      const counts: Record<string, number> = {};
      for (const { filter } of open())
        for (const uri of filter.resourceSubscriptions ?? []) counts[uri] = (counts[uri] ?? 0) + 1;
      return counts;
    },
    filters: () => open().map(({ filter }) => filter),
    forget() {
      for (const { stream } of streams.splice(0)) stream.destroy();
      backend.forget();
    },
  };
}

export const startTelling = {
  legacy: startTellingLegacy,
  modern: startTellingModern,
};

/** A client that hears of changes, of either era. */
export interface Listener {
  readonly stream: RawStream;
  /** The notifications of changes so far, in order. */
  changes(): Loose[];
  /** Their methods, or the uri of a changed resource. */
  heard(): string[];
  /** The modern client's acknowledgement. */
  readonly ack: Loose;
  close(): void;
}

export const nameOf = ({ method, params }: Loose): string => (method === UPDATED ? params.uri : method);

function listenerOn(stream: RawStream, ack: Loose): Listener {
  const changes = () =>
    stream.events.flatMap(({ json }) => (json?.method && json.method !== ACKNOWLEDGED ? [json] : []));
  return {
    stream,
    ack,
    changes,
    heard: () => changes().map(nameOf),
    close: () => stream.abort(),
  };
}

/** Opens a modern client's subscription, and waits for the acknowledgement. */
export async function listen(url: string, notifications: Loose, options?: ModernOptions): Promise<Listener> {
  const stream = await openModern(url, 'subscriptions/listen', { notifications }, options);
  const { json } = await stream.next();
  if (json?.method !== ACKNOWLEDGED) throw new Error(`no acknowledgement but ${JSON.stringify(json)}`);
  return listenerOn(stream, json);
}

/** Opens a legacy client's GET stream. */
export async function listenLegacy(session: LegacySession): Promise<Listener> {
  return listenerOn(await session.listen(), undefined);
}

/** Waits until a listener has heard so much, and a little longer for what should not come. */
export async function heardBy(listener: Listener, expected: number, quietMs = 60): Promise<string[]> {
  await until(() => listener.heard().length >= expected, `${expected} changes, heard ${listener.heard()}`);
  await sleep(quietMs);
  return listener.heard();
}

/** Closes what the tests of a file have opened, the latest first. */
export class Opened {
  readonly #parts: { close(): unknown }[] = [];

  add<T extends { close(): unknown }>(part: T): T {
    this.#parts.push(part);
    return part;
  }

  /** Starts a gateway with one route, to a backend. */
  async routeTo<T extends TellingBackend>(backend: T, route: Loose = {}, config: Loose = {}) {
    this.add(backend);
    const gateway = this.add(
      await startGateway({ '/mcp': { backend: { url: backend.url }, ...route } }, config),
    );
    return { backend, gateway, url: gateway.url() };
  }

  async closeAll(): Promise<void> {
    for (const part of this.#parts.splice(0).reverse()) await part.close();
  }
}

/** What the log lines of a method say of the cache. */
export const cacheOf = ({ logs }: TestGateway, wanted: string) =>
  logs.filter(({ method }) => method === wanted).map(({ cache }) => cache);
