import type { Loose } from './net.js';

const MODERN = '2026-07-28';
const blocksOf = (content: Loose): Loose[] => (Array.isArray(content) ? content : [content]);

/**
 * What a question to a client must have, and must not have, by its revision, beside what the SDKs' schemas say: they
 * know the newest legacy revision, and take a question of the modern one for a legacy one.
 * @param params of `elicitation/create`, `sampling/createMessage` or `roots/list`
 */
export function questionProblems(method: string, params: Loose, revision: string): string[] {
  const problems: string[] = [];
  const has = (key: string) => params !== undefined && key in params;
  if (method === 'elicitation/create') {
    if (has('mode') && revision < '2025-11-25') problems.push(`mode ${params.mode} came with 2025-11-25`);
    const hasId = typeof params?.elicitationId === 'string';
    if (params?.mode === 'url' && hasId === revision >= MODERN)
      problems.push(hasId ? 'has elicitationId' : 'no elicitationId');
    if (params?.mode === 'url' && typeof params.url !== 'string') problems.push('no url');
    if (typeof params?.message !== 'string') problems.push('no message');
  }
  if (method === 'sampling/createMessage' && revision < '2025-11-25') {
    for (const key of ['tools', 'toolChoice']) if (has(key)) problems.push(`${key} came with 2025-11-25`);
    if (params?.messages?.some(({ content }: Loose) => Array.isArray(content)))
      problems.push('content that is a list came with 2025-11-25');
  }
  if (revision >= MODERN) {
    if (has('task')) problems.push('has task');
    for (const key of ['progressToken', 'io.modelcontextprotocol/related-task'])
      if (params?._meta && key in params._meta) problems.push(`_meta has ${key}`);
  }
  return problems;
}

/** The same of a client's answer, the result of a question of this method, or of one that is not known. */
export function answerProblems(method: string | undefined, result: Loose, revision: string): string[] {
  const problems: string[] = [];
  if (typeof result !== 'object' || result === null) return ['an answer that is no object'];
  if ('resultType' in result) problems.push('answer has resultType');
  const kinds = [
    ['elicitation/create', ['accept', 'decline', 'cancel'].includes(result.action)],
    ['sampling/createMessage', typeof result.model === 'string' && result.content !== undefined],
    ['roots/list', Array.isArray(result.roots)],
  ] as const;
  if (!kinds.some(([kind, fits]) => fits && (method ?? kind) === kind)) problems.push('an answer of no kind');
  if (method === 'sampling/createMessage' && revision < '2025-11-25') {
    if (Array.isArray(result.content)) problems.push('content that is a list came with 2025-11-25');
    for (const { type } of blocksOf(result.content))
      if (/^tool_/.test(type)) problems.push(`content of type ${type} came with 2025-11-25`);
  }
  return problems;
}
