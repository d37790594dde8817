import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { isLogLevel, type LogLevel } from '../../../exchange/log-levels.js';
import { type JsonNode, stringMember } from '../../../jsonrpc/index.js';
import type { BackendSession } from './session.js';
import { configure, configureEach } from './session-setup.js';

/** Limit of the resources that are subscribed to again on another session. */
const MAX_RESOURCES = 1_000;

/** Settings of a client's session that outlast the requests that made them: they are made again on another session. */
export class SessionSettings {
  #resources: Set<string> | undefined;
  #level: LogLevel | undefined;

  /** Resources that the client is subscribed to. */
  get resources(): readonly string[] {
    return [...(this.#resources ?? [])];
  }

  /** Notes a request that the backend accepted. */
  note(method: string, bytes: Buffer, params: JsonNode | undefined): void {
    if (method === 'logging/setLevel') {
      const level = stringMember(bytes, params, 'level');
      this.#level = isLogLevel(level) ? level : undefined;
    } else if (method === 'resources/subscribe') this.#add(stringMember(bytes, params, 'uri'));
    else if (method === 'resources/unsubscribe')
      this.#resources?.delete(stringMember(bytes, params, 'uri') ?? '');
  }

  #add(uri: string | undefined): void {
    if (uri === undefined || (this.#resources?.size ?? 0) >= MAX_RESOURCES) return;
    this.#resources ??= new Set();
    this.#resources.add(uri);
  }

  /** Makes the settings on a session; never throws. The client cannot learn of a setting that is refused now. */
  async restoreOn(session: BackendSession, forwarded: ForwardedHeaders): Promise<void> {
    const level = this.#level;
    await Promise.allSettled([
      level === undefined ? undefined : configure(session, 'logging/setLevel', { level }, forwarded),
      configureEach(session, 'resources/subscribe', this.resources, forwarded),
    ]);
  }
}
