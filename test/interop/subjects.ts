import type { Loose } from '../support/net.js';
import { fixture, type Peer, startEverything, startV1, startV2 } from '../support/peers/index.js';

/** A server that the gateway must carry, and what it serves under which names. */
export interface Subject {
  readonly name: string;
  readonly era: 'legacy' | 'modern' | 'both';
  start(): Promise<Peer>;
  /** It sends progress and log messages on the stream of a call. */
  readonly streams: boolean;
  /** It tells its calls (`peer.calls`) and aborts a call that is cancelled. */
  readonly aborts: boolean;
  readonly sum: { tool: string; text: string };
  readonly echo: { tool: string; args(value: string): Loose; text(value: string): string };
  readonly failing: { tool: string; args: Loose; text: RegExp };
  /** A call that takes `ms` and gives `steps` progress notifications on the way. */
  readonly slow: { tool: string; args(ms: number, steps: number): Loose };
  readonly resource: { uri: string; text: RegExp };
  readonly missing: string;
  /** URI of a resource outside ASCII. */
  readonly foreign?: string;
  readonly resources: number;
  readonly template: string;
  readonly prompt: { name: string; args: Loose; text: string };
  readonly completion: { ref: Loose; argument: { name: string; value: string }; values: string[] };
  /** Tools beside those above that the lists must have. */
  readonly tools: readonly string[];
}

const FIXTURE: Omit<Subject, 'name' | 'era' | 'start'> = {
  streams: true,
  aborts: true,
  sum: { tool: 'add', text: 'The sum of 3 and 4 is 7.' },
  echo: {
    tool: 'echo',
    args: (value: string) => ({ value }),
    text: (value: string) => JSON.stringify({ value }),
  },
  failing: { tool: 'order_status', args: { order_id: 'PT-9999' }, text: /PT-9999 was not found/ },
  slow: { tool: 'slow', args: (ms: number, steps: number) => ({ ms, steps }) },
  resource: { uri: fixture.CONFIG_URI, text: /"debug":true/ },
  missing: fixture.MISSING_URI,
  foreign: fixture.REPORT_URI,
  resources: fixture.RESOURCES.length,
  template: fixture.NOTE_TEMPLATE,
  prompt: { name: 'greet', args: { name: 'Ada', style: 'formal' }, text: 'Greet Ada in a formal way.' },
  completion: {
    ref: { type: 'ref/prompt', name: 'greet' },
    argument: { name: 'name', value: 'A' },
    values: ['Ada', 'Alan'],
  },
  tools: ['get_weather', 'order_status', 'count'],
};

const EVERYTHING: Subject = {
  name: 'server-everything',
  era: 'legacy',
  start: startEverything,
  streams: true,
  aborts: false,
  sum: { tool: 'get-sum', text: 'The sum of 3 and 4 is 7.' },
  echo: { tool: 'echo', args: (message) => ({ message }), text: (value) => `Echo: ${value}` },
  failing: { tool: 'get-sum', args: { a: 'three', b: 4 }, text: /Invalid arguments for tool get-sum/ },
  slow: {
    tool: 'trigger-long-running-operation',
    args: (ms, steps) => ({ duration: ms / 1000, steps }),
  },
  resource: { uri: 'demo://resource/static/document/architecture.md', text: /Architecture/ },
  missing: 'demo://resource/static/document/none.md',
  resources: 7,
  template: 'demo://resource/dynamic/text/{resourceId}',
  prompt: { name: 'args-prompt', args: { city: 'Gdańsk' }, text: "What's weather in Gdańsk?" },
  completion: {
    ref: { type: 'ref/prompt', name: 'completable-prompt' },
    argument: { name: 'department', value: 'S' },
    values: ['Sales', 'Support'],
  },
  tools: ['get-tiny-image', 'get-structured-content'],
};

/** Every server of the matrix. */
export const SUBJECTS: readonly Subject[] = [
  EVERYTHING,
  { ...FIXTURE, name: 'V1 stateful', era: 'legacy', start: () => startV1() },
  // A cancellation has no session to arrive on.
  {
    ...FIXTURE,
    name: 'V1 stateless',
    era: 'legacy',
    aborts: false,
    start: () => startV1({ stateless: true }),
  },
  { ...FIXTURE, name: 'V1 JSON', era: 'legacy', streams: false, start: () => startV1({ json: true }) },
  { ...FIXTURE, name: 'v2 default', era: 'both', start: () => startV2(), tools: ['numbers', 'by_region'] },
  {
    ...FIXTURE,
    name: 'v2 reject',
    era: 'modern',
    start: () => startV2({ legacy: 'reject' }),
    tools: ['numbers', 'by_region'],
  },
];
