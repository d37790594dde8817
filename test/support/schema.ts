import * as core from '@modelcontextprotocol/core';
import * as tasksOfLegacy from '@modelcontextprotocol/ext-tasks/core/v1';
import * as tasks from '@modelcontextprotocol/ext-tasks/core/v2';
import * as sdk from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { Loose } from './net.js';
import { answerProblems, questionProblems } from './schema-questions.js';

/** `c2s`: from an MCP client to an MCP server; `s2c`: the other way. */
export type Direction = 'c2s' | 's2c';

/** A JSON-RPC message in its context. */
export interface FrameContext {
  readonly message: Loose;
  readonly direction: Direction;
  /** `2026-07-28` is modern, anything older legacy. */
  readonly revision: string;
  /** Of a result or an error: the method that it answers; undefined if that is not known. */
  readonly requestMethod?: string | undefined;
}

export const MODERN_REVISION = '2026-07-28';
export const isModern = (revision: string) => revision >= MODERN_REVISION;

const META = 'io.modelcontextprotocol/';
const ENVELOPE = ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel'].map((key) => META + key);
const RESERVED = [...ENVELOPE, `${META}serverInfo`, `${META}subscriptionId`];

/** Methods by era and direction, with the revision that brought them where that is not the first one. */
const METHODS: Record<'legacy' | 'modern', Record<Direction, Record<string, string | undefined>>> = {
  legacy: {
    c2s: {
      initialize: undefined,
      ping: undefined,
      'tools/list': undefined,
      'tools/call': undefined,
      'prompts/list': undefined,
      'prompts/get': undefined,
      'resources/list': undefined,
      'resources/templates/list': undefined,
      'resources/read': undefined,
      'resources/subscribe': undefined,
      'resources/unsubscribe': undefined,
      'completion/complete': undefined,
      'logging/setLevel': undefined,
      'tasks/get': '2025-11-25',
      'tasks/result': '2025-11-25',
      'tasks/list': '2025-11-25',
      'tasks/cancel': '2025-11-25',
      'notifications/initialized': undefined,
      'notifications/cancelled': undefined,
      'notifications/progress': undefined,
      'notifications/roots/list_changed': undefined,
      'notifications/tasks/status': '2025-11-25',
    },
    s2c: {
      ping: undefined,
      'sampling/createMessage': undefined,
      'roots/list': undefined,
      'elicitation/create': '2025-06-18',
      'tasks/get': '2025-11-25',
      'tasks/result': '2025-11-25',
      'tasks/list': '2025-11-25',
      'tasks/cancel': '2025-11-25',
      'notifications/cancelled': undefined,
      'notifications/progress': undefined,
      'notifications/message': undefined,
      'notifications/tools/list_changed': undefined,
      'notifications/prompts/list_changed': undefined,
      'notifications/resources/list_changed': undefined,
      'notifications/resources/updated': undefined,
      'notifications/elicitation/complete': '2025-11-25',
      'notifications/tasks/status': '2025-11-25',
    },
  },
  modern: {
    c2s: {
      'server/discover': undefined,
      'tools/list': undefined,
      'tools/call': undefined,
      'prompts/list': undefined,
      'prompts/get': undefined,
      'resources/list': undefined,
      'resources/templates/list': undefined,
      'resources/read': undefined,
      'completion/complete': undefined,
      'subscriptions/listen': undefined,
      'tasks/get': undefined,
      'tasks/update': undefined,
      'tasks/cancel': undefined,
      'notifications/cancelled': undefined,
    },
    s2c: {
      'notifications/cancelled': undefined,
      'notifications/progress': undefined,
      'notifications/message': undefined,
      'notifications/tools/list_changed': undefined,
      'notifications/prompts/list_changed': undefined,
      'notifications/resources/list_changed': undefined,
      'notifications/resources/updated': undefined,
      'notifications/subscriptions/acknowledged': undefined,
      'notifications/tasks': undefined,
    },
  },
};
const KNOWN = new Set(
  Object.values(METHODS).flatMap(({ c2s, s2c }) => [...Object.keys(c2s), ...Object.keys(s2c)]),
);

/** Results that must say how long they may be kept (2026-07-28, `CacheableResult`). */
const CACHEABLE = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);
/** Requests that may be answered with `input_required`. */
const MULTI_ROUND = new Set(['tools/call', 'prompts/get', 'resources/read']);
/** What a server asks a client: in its own requests, or in `inputRequests`. */
const QUESTIONS = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list']);
const EMPTY = new Set(['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']);
/** Members that a schema lets pass as unknown ones but that belong to the other era. */
const MODERN_RESULT = [
  'resultType',
  'ttlMs',
  'cacheScope',
  'inputRequests',
  'requestState',
  'supportedVersions',
];
/** Content block types and the revision that brought them. */
const CONTENT_SINCE: Record<string, string> = { audio: '2025-03-26', resource_link: '2025-06-18' };

interface Schemas {
  readonly message: z.ZodType;
  /** Requests and notifications by method. */
  readonly byMethod: ReadonlyMap<string, z.ZodType>;
  /** Results by method of the request. */
  readonly results: ReadonlyMap<string, z.ZodType>;
}

/** Collects the schemas of an SDK by the method literal that they carry: `XRequestSchema` goes with `XResultSchema`. */
function collect(exports: Record<string, Loose>): Schemas {
  const byMethod = new Map<string, z.ZodType>();
  const results = new Map<string, z.ZodType>();
  for (const [name, schema] of Object.entries(exports)) {
    const method = schema?.shape?.method?.value;
    if (typeof method !== 'string') continue;
    byMethod.set(method, schema);
    if (!name.endsWith('RequestSchema')) continue;
    const result = exports[name.replace('RequestSchema', 'ResultSchema')];
    if (result) results.set(method, result);
    else if (EMPTY.has(method)) results.set(method, exports['EmptyResultSchema']);
  }
  results.set(
    'sampling/createMessage',
    z.union([exports['CreateMessageResultWithToolsSchema'], exports['CreateMessageResultSchema']]),
  );
  return { message: exports['JSONRPCMessageSchema'], byMethod, results };
}

const SCHEMAS = { legacy: collect(sdk as Loose), modern: withTasks(collect(core as Loose)) };

/** The extension has methods of the legacy era's names, with other params and results. */
function withTasks({ message, byMethod, results }: Schemas): Schemas {
  const params = (shape: Record<string, z.ZodType>, method: string): z.ZodType =>
    z.object({ method: z.literal(method), params: z.object(shape) });
  const taskId = z.string();
  return {
    message,
    byMethod: new Map([
      ...byMethod,
      ['tasks/get', params({ taskId }, 'tasks/get')],
      ['tasks/update', params({ taskId, inputResponses: tasks.InputResponsesV2Schema }, 'tasks/update')],
      ['tasks/cancel', params({ taskId }, 'tasks/cancel')],
      ['notifications/tasks', z.object({ params: tasks.TaskStatusNotificationParamsV2Schema })],
    ]),
    results: new Map([
      ...results,
      ['tasks/get', tasks.GetTaskResultV2Schema],
      ['tasks/update', tasks.UpdateTaskResultV2Schema],
      ['tasks/cancel', tasks.CancelTaskResultV2Schema],
    ]),
  };
}

/** Members that the one era's tasks have and the other's do not. */
const TASK_MEMBERS = {
  legacy: ['ttlMs', 'pollIntervalMs', 'result', 'error', 'inputRequests', 'resultType'],
  modern: ['ttl', 'pollInterval', 'task'],
};

/** What is wrong with a task: of `tasks/get`, of its notification, or of the answer to the call that made it. */
function taskProblems(method: string | undefined, value: Loose, era: 'legacy' | 'modern'): string[] {
  const isHandle = method === 'tools/call' && (era === 'legacy' ? value?.task : value?.resultType === 'task');
  if (!isHandle && !['tasks/get', 'notifications/tasks', 'notifications/tasks/status'].includes(method ?? ''))
    return [];
  const task = isHandle && era === 'legacy' ? value.task : value;
  const problems = TASK_MEMBERS[era].filter((key) => key in task).map((key) => `task has ${key}`);
  if (era === 'legacy') problems.push(...check(tasksOfLegacy.TaskV1Schema, task, 'task'));
  else if (isHandle) problems.push(...check(tasks.CreateTaskResultV2Schema, value, 'task'));
  for (const [key, request] of Object.entries<Loose>(value.inputRequests ?? {}))
    problems.push(
      ...inputRequestProblems(request, MODERN_REVISION).map((what) => `inputRequests.${key}: ${what}`),
    );
  if (era === 'modern' && value.status === 'completed' && value.result !== undefined)
    problems.push(...check(SCHEMAS.modern.results.get('tools/call'), value.result, 'result of the task'));
  return problems;
}

function check(schema: z.ZodType | undefined, value: unknown, what: string): string[] {
  const outcome = schema?.safeParse(value);
  if (!outcome || outcome.success) return [];
  return outcome.error.issues
    .slice(0, 5)
    .map((issue) => `${what}: ${issue.path.join('.')}: ${issue.message} (${issue.code})`);
}

const isObject = (value: unknown): value is Record<string, Loose> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * What is wrong with a message by the schema of its revision, and which parts of the other era it still shows. Empty:
 * nothing. The zod schemas of the two SDK lines (`@modelcontextprotocol/sdk` for the legacy revisions,
 * `@modelcontextprotocol/core` for 2026-07-28) say what the parts look like; since they are lenient where their own
 * line has to be, what a revision requires and forbids is checked beside them.
 */
export function problemsOf(frame: FrameContext): string[] {
  const { message, revision } = frame;
  if (Array.isArray(message)) {
    if (revision !== '2025-03-26') return [`a batch under ${revision}`];
    return message.flatMap((item) => problemsOf({ ...frame, message: item }));
  }
  if (!isObject(message)) return ['not a JSON object'];
  const era = isModern(revision) ? 'modern' : 'legacy';
  const schemas = SCHEMAS[era];
  const errorWithoutId = 'error' in message && message['id'] === null;
  const { id: _id, ...withoutId } = message;
  const problems = check(schemas.message, errorWithoutId ? withoutId : message, 'JSON-RPC');
  if (typeof message['method'] === 'string') problems.push(...callProblems(frame, era));
  else if (isObject(message['result'])) problems.push(...resultProblems(frame, era));
  else if (isObject(message['error'])) problems.push(...errorProblems(message['error'], era));
  const label = message['method'] ?? `answer to ${frame.requestMethod ?? '?'}`;
  return problems.map((problem) => `${revision} ${frame.direction} ${label}: ${problem}`);
}

function callProblems({ message, direction, revision }: FrameContext, era: 'legacy' | 'modern'): string[] {
  const { method, params } = message;
  const isRequest = 'id' in message;
  const problems = check(SCHEMAS[era].byMethod.get(method), { method, params }, 'params');
  const since = METHODS[era][direction];
  if (KNOWN.has(method) && !(method in since)) problems.push(`no ${direction} method of this era`);
  if ((since[method] ?? '') > revision) problems.push(`came with ${since[method]}`);
  if (isRequest === method.startsWith('notifications/')) problems.push('request and notification mixed up');
  if (!isRequest) problems.push(...taskProblems(method, params, era));
  if (era === 'legacy') {
    if (QUESTIONS.has(method)) problems.push(...questionProblems(method, params, revision));
    for (const key of RESERVED) if (params?._meta && key in params._meta) problems.push(`_meta has ${key}`);
    for (const key of ['inputResponses', 'requestState']) {
      if (isObject(params) && key in params) problems.push(`params has ${key}`);
    }
    return problems;
  }
  if (direction === 's2c' && isRequest) problems.push('a server request, of which this revision has none');
  if (direction === 'c2s' && isRequest) {
    if (typeof params?._meta?.[`${META}protocolVersion`] !== 'string') problems.push('no protocolVersion');
    if (!isObject(params?._meta?.[`${META}clientCapabilities`])) problems.push('no clientCapabilities');
    if (isObject(params) && 'task' in params) problems.push('params has task');
    for (const [key, answer] of Object.entries(params?.inputResponses ?? {})) {
      for (const problem of answerProblems(undefined, answer, revision))
        problems.push(`inputResponses.${key}: ${problem}`);
    }
  }
  return problems;
}

function resultProblems(
  { message, revision, requestMethod }: FrameContext,
  era: 'legacy' | 'modern',
): string[] {
  const { result } = message;
  const asksBack = era === 'modern' && result.resultType === 'input_required';
  const isHandle =
    requestMethod === 'tools/call' && (result.task !== undefined || result.resultType === 'task');
  const schema =
    requestMethod === undefined || asksBack || isHandle ? undefined : SCHEMAS[era].results.get(requestMethod);
  const problems = check(schema, result, 'result');
  problems.push(...taskProblems(requestMethod, result, era));
  if (requestMethod === 'tools/call' && !asksBack && result.task === undefined) {
    if (result.resultType !== 'task' && !Array.isArray(result.content)) problems.push('no content');
  }
  for (const { type } of blocksOf(result)) {
    if ((CONTENT_SINCE[type] ?? '') > revision) problems.push(`content of type ${type}`);
  }
  if (era === 'legacy') {
    if (requestMethod !== undefined && QUESTIONS.has(requestMethod))
      problems.push(...answerProblems(requestMethod, result, revision));
    for (const key of MODERN_RESULT) if (key in result) problems.push(`result has ${key}`);
    for (const key of RESERVED) if (key in (result._meta ?? {})) problems.push(`result _meta has ${key}`);
    return problems;
  }
  if (typeof result.resultType !== 'string') problems.push('no resultType');
  if (requestMethod !== undefined && CACHEABLE.has(requestMethod) && !asksBack) {
    if (!Number.isInteger(result.ttlMs) || result.ttlMs < 0) problems.push(`ttlMs is ${result.ttlMs}`);
    if (!['public', 'private'].includes(result.cacheScope))
      problems.push(`cacheScope is ${result.cacheScope}`);
  }
  if (asksBack) {
    if (requestMethod !== undefined && !MULTI_ROUND.has(requestMethod)) problems.push('input_required here');
    if (!result.inputRequests && !result.requestState) problems.push('input_required asks for nothing');
    for (const [key, request] of Object.entries<Loose>(result.inputRequests ?? {}))
      problems.push(
        ...inputRequestProblems(request, revision).map((what) => `inputRequests.${key}: ${what}`),
      );
  }
  if (requestMethod === 'server/discover') {
    for (const key of ['serverInfo', 'protocolVersion'])
      if (key in result) problems.push(`result has ${key}`);
    if (result.capabilities?.tasks) problems.push('capabilities has tasks');
  }
  for (const tool of result.tools ?? [])
    if ('execution' in tool) problems.push(`tool ${tool.name} has execution`);
  return problems;
}

function inputRequestProblems({ method, params, ...rest }: Loose, revision: string): string[] {
  if (!QUESTIONS.has(method)) return [`no question: ${method}`];
  // The SDK's schema of a visit is that of the legacy revision, with an id that the modern one does not have.
  const legacy = params?.mode === 'url' ? { elicitationId: 'none', ...params } : params;
  const problems = check(SCHEMAS.modern.byMethod.get(method), { method, params: legacy }, 'request');
  for (const key of Object.keys(rest)) problems.push(`has ${key}`);
  return [...problems, ...questionProblems(method, params, revision)];
}

function blocksOf(result: Loose): Loose[] {
  const messages = Array.isArray(result.messages)
    ? result.messages.map((message: Loose) => message?.content)
    : [];
  return [...(Array.isArray(result.content) ? result.content : []), ...messages.flat()].filter(isObject);
}

/** Codes of 2026-07-28 and what their `data` must have. */
const MODERN_CODES: Record<number, (data: Loose) => boolean> = {
  [-32020]: () => true,
  [-32021]: (data) => isObject(data?.requiredCapabilities),
  [-32022]: (data) => Array.isArray(data?.supported) && typeof data?.requested === 'string',
};

function errorProblems({ code, data }: Record<string, Loose>, era: 'legacy' | 'modern'): string[] {
  if (era === 'legacy') return code in MODERN_CODES ? [`error code ${code}`] : [];
  const problems: string[] = [];
  if (code in MODERN_CODES && !MODERN_CODES[code]?.(data)) problems.push(`data of error ${code}`);
  // -32002 and -32042 were taken out of the protocol; -32020 to -32099 are the specification's own.
  if (code === -32002 || code === -32042) problems.push(`error code ${code}`);
  if (code <= -32020 && code >= -32099 && !(code in MODERN_CODES))
    problems.push(`reserved error code ${code}`);
  return problems;
}
