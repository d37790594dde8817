import { type CellOptions, type Rig, startCell } from '../support/cells.js';
import type { Step } from '../support/misbehave.js';
import { type Loose, until } from '../support/net.js';
import type { LegacySession, RawStream } from '../support/raw.js';

/** A call in progress at the backend, to be moved on step by step. */
export interface RemoteCall {
  /** Reports progress; the client sees it under its own token. */
  progress(n: number): void;
  /** Answers the call with an error. */
  fail(code: number, message: string): void;
  /** Answers the call. */
  finish(text: string): void;
  /** The client's side of the backend's stream has gone: the call was cancelled, or its connection closed. */
  readonly step: Step;
}

export interface ResumptionRig extends Rig {
  /** Calls that reached the backend, in their order. */
  readonly calls: readonly RemoteCall[];
  /** Waits for the next call to reach the backend. */
  nextCall(act: () => unknown): Promise<RemoteCall>;
}

/** A cell whose backend's tool is moved on by the test. */
export async function startResumption(
  cell: 'LL' | 'LM',
  { version = '2025-11-25', ...options }: CellOptions & { version?: string } = {},
): Promise<ResumptionRig> {
  const rig = await startCell(cell, { ...options, handshake: { version, ...options.handshake } });
  const calls: RemoteCall[] = [];
  rig.on('tools/call', (step) => {
    const events = step.stream({ 'mcp-session-id': step.session ?? '' });
    calls.push({
      step,
      progress: (progress) =>
        events.event({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken: step.params._meta.progressToken, progress },
        }),
      fail: (code, message) => {
        events.event(step.frame({ error: { code, message } }));
        events.end();
      },
      finish: (text) => {
        const { result } = rig.result(JSON.stringify({ content: [{ type: 'text', text }] }));
        events.event(step.frame({ result }));
        events.end();
      },
    });
    return undefined;
  });
  return Object.assign(rig, {
    calls,
    async nextCall(act: () => unknown) {
      const before = calls.length;
      act();
      return until(() => calls[before], 'the call at the backend');
    },
  });
}

/** Begins a call whose answer is an event stream. */
export async function begin(
  rig: ResumptionRig,
  session: LegacySession,
  id: unknown = 'call',
): Promise<{ stream: RawStream; remote: RemoteCall }> {
  let opening: Promise<RawStream> | undefined;
  const params = { name: 'slow', arguments: {}, _meta: { progressToken: `token of ${id}` } };
  const remote = await rig.nextCall(() => {
    opening = session.open('tools/call', params, { id });
  });
  remote.progress(1);
  const stream = (await opening) as RawStream;
  await stream.next();
  return { stream, remote };
}

export const resume = (session: LegacySession, lastEventId: string, more: Record<string, string> = {}) =>
  session.listen({ 'last-event-id': lastEventId, ...more });

/** What the messages of a stream say: the progress, or the text of the result. */
export const said = (events: readonly { json: Loose }[]): unknown[] =>
  events.map(({ json }) => json.params?.progress ?? json.result?.content?.[0]?.text ?? json.error ?? json);

/** The id of the last event that a client has of a stream. */
export const lastIdOf = (stream: RawStream): string =>
  stream.events.at(-1)?.id ?? (stream.primings.at(-1) as string);
