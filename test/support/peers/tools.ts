import type { Loose } from '../net.js';
import { ASKING_TOOLS } from './asking.js';
import { CONNECT_URL, echoed, orderStatus, SCHEMAS, TEXT, WEATHER } from './fixture.js';
import type { FixtureState, FixtureTool, ToolContext } from './fixture-tool.js';
import type { ToolCall } from './peer.js';

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new Error('The call was cancelled.'));
    });
  });
}

export const TOOLS: Readonly<Record<string, FixtureTool>> = {
  echo: {
    title: 'Echo',
    description: 'Returns its arguments',
    inputSchema: SCHEMAS.anything,
    run: (args, { meta }) => echoed(args, meta),
  },
  add: {
    title: 'Add',
    description: 'Adds two numbers',
    inputSchema: SCHEMAS.add,
    run: ({ a, b }) => TEXT(`The sum of ${a} and ${b} is ${a + b}.`),
  },
  get_weather: {
    title: 'Weather',
    description: 'Tells the weather at a place',
    inputSchema: SCHEMAS.weather,
    run: () => ({ ...TEXT(WEATHER), isError: false }),
  },
  order_status: {
    title: 'Order status',
    description: 'Looks an order up',
    inputSchema: SCHEMAS.order,
    outputSchema: SCHEMAS.orderResult,
    run: ({ order_id }) => orderStatus(order_id),
  },
  slow: {
    title: 'Slow',
    description: 'Takes its time and reports progress if a token came along',
    inputSchema: SCHEMAS.slow,
    async run({ ms, steps = 3 }, { meta, signal, notify }) {
      for (let step = 1; step <= steps; step += 1) {
        await pause(ms / steps, signal);
        const progressToken = meta?.progressToken;
        if (progressToken === undefined) continue;
        const message = `Step ${step} of ${steps}`;
        await notify('notifications/progress', { progressToken, progress: step, total: steps, message });
      }
      return TEXT(`Done after ${ms} ms.`);
    },
  },
  log: {
    title: 'Log',
    description: 'Emits a log message',
    inputSchema: SCHEMAS.log,
    async run({ message, level = 'info', via = 'request' }, { log }) {
      await log(level, message, via);
      return TEXT('Logged.');
    },
  },
  count: {
    title: 'Count',
    description: 'Counts its calls since the server started',
    inputSchema: SCHEMAS.anything,
    run(_args, _context, state) {
      state.count += 1;
      return { ...TEXT(String(state.count)), structuredContent: { count: state.count } };
    },
  },
  session: {
    title: 'Session',
    description: 'Names the session that the call came on',
    inputSchema: SCHEMAS.anything,
    run: (_args, { sessionId }) => TEXT(sessionId ?? 'none'),
  },
  remember: {
    title: 'Remember',
    description: 'Keeps a value for the rest of the session',
    inputSchema: { type: 'object', properties: { value: { type: 'string' } }, required: ['value'] },
    run({ value }, { memory }) {
      memory.set('value', value);
      return TEXT('Kept.');
    },
  },
  recall: {
    title: 'Recall',
    description: 'Tells the value that the session keeps',
    inputSchema: SCHEMAS.anything,
    run: (_args, { memory }) => TEXT(memory.get('value') ?? 'nothing'),
  },
  fail: {
    title: 'Fail',
    description: 'Throws',
    inputSchema: SCHEMAS.anything,
    run: () => {
      throw new Error('It broke.');
    },
  },
  big: {
    title: 'Big',
    description: 'Returns text of as many bytes as asked for',
    inputSchema: { type: 'object', properties: { bytes: { type: 'integer' } }, required: ['bytes'] },
    run: ({ bytes }) => TEXT('x'.repeat(bytes)),
  },
  ...ASKING_TOOLS,
  connect_account: {
    title: 'Connect an account',
    description: 'Needs a visit to a web page by the user',
    inputSchema: SCHEMAS.anything,
    run: (_args, { visit }) => visit('Connect your account', CONNECT_URL) ?? TEXT('Connected.'),
  },
  by_region: {
    title: 'By region',
    description: 'Has arguments that travel in headers too',
    inputSchema: SCHEMAS.region,
    lines: 'v2',
    run: (args, { meta }) => echoed(args, meta),
  },
  numbers: {
    title: 'Numbers',
    description: 'Returns a list as structured content',
    inputSchema: SCHEMAS.anything,
    outputSchema: SCHEMAS.numbers,
    lines: 'v2',
    run: () => ({ ...TEXT('[1,2,3]'), structuredContent: [1, 2, 3] }),
  },
};

/** Runs a tool and keeps the record of the call. */
export async function runTool(name: string, args: Loose, context: ToolContext, state: FixtureState) {
  const call: ToolCall = {
    tool: name,
    arguments: args,
    meta: context.meta,
    sessionId: context.sessionId,
    cancelled: false,
    finished: false,
  };
  state.calls.push(call);
  context.signal.addEventListener('abort', () => {
    if (!call.finished) call.cancelled = true;
  });
  try {
    return await (TOOLS[name] as FixtureTool).run(args, context, state);
  } finally {
    call.finished = true;
  }
}

/** The fixture's tools for one SDK line, in list order. */
export function toolsOf(line: 'v1' | 'v2'): [string, FixtureTool][] {
  return Object.entries(TOOLS).filter(([, tool]) => !tool.lines || tool.lines === line);
}
