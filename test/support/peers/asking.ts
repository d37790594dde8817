import type { Loose } from '../net.js';
import { SCHEMAS, TEXT } from './fixture.js';
import type { Ask, FixtureTool, Round, ToolContext } from './fixture-tool.js';

export type { Ask, Round } from './fixture-tool.js';

export const form = (message: string, property = 'value'): Ask => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message,
    requestedSchema: { type: 'object', properties: { [property]: { type: 'string' } }, required: [property] },
  },
});

export const visit = (url: string, message = 'Please visit the page'): Ask => ({
  method: 'elicitation/create',
  params: { mode: 'url', message, url },
});

export const sample = (text: string, more: Loose = {}): Ask => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens: 50, ...more },
});

export const listRoots: Ask = { method: 'roots/list' };

/** A resource whose text has the reader's name in it; the prompt `introduce` asks for it too. */
export const GUEST_BOOK_URI = 'guest:///book';

/** Asks for a name: the name or how it was refused, or what the handler must return for now. */
export async function nameOf({ ask }: ToolContext): Promise<Loose> {
  const asked = await ask(0, { name: form('What is your name?', 'name') });
  if ('result' in asked) return asked.result;
  const { action, content, error } = asked.answers['name'];
  if (error) return `(error ${error.code})`;
  return action === 'accept' ? content.name : `(${action})`;
}

const ASK = {
  type: 'object',
  properties: {
    rounds: { type: 'array', items: { type: 'object', additionalProperties: true } },
    via: { type: 'string', enum: ['request', 'session'] },
    notes: { type: 'boolean', description: 'Progress and log messages before, between and after the rounds' },
  },
  required: ['rounds'],
};

async function tell(context: ToolContext, step: number, steps: number, data: string): Promise<void> {
  const progressToken = context.meta?.progressToken;
  const progress = { progressToken, progress: step, total: steps, message: data };
  if (progressToken !== undefined) await context.notify('notifications/progress', progress);
  await context.log('info', data, 'request');
}

/** Tools that need the client while they run. */
export const ASKING_TOOLS: Readonly<Record<string, FixtureTool>> = {
  ask: {
    title: 'Ask',
    description:
      'Puts the rounds of questions that its arguments hold to the client, and returns the answers',
    inputSchema: ASK,
    async run({ rounds, via, notes }: { rounds: Round[]; via?: 'session'; notes?: boolean }, context) {
      const answers: Record<string, Loose> = {};
      for (const [index, round] of rounds.entries()) {
        if (notes && !context.answered(index)) {
          await tell(context, index + 1, rounds.length + 1, `before round ${index + 1}`);
        }
        const asked = await context.ask(index, round, via);
        if ('result' in asked) return asked.result;
        Object.assign(answers, asked.answers);
      }
      if (notes) await tell(context, rounds.length + 1, rounds.length + 1, 'after all rounds');
      return { ...TEXT(JSON.stringify(answers)), structuredContent: answers };
    },
  },
  ask_name: {
    title: 'Ask for a name',
    description: 'Needs a form filled in by the user',
    inputSchema: SCHEMAS.anything,
    async run(_args, context) {
      const name = await nameOf(context);
      return typeof name === 'string' ? TEXT(`Hello ${name}.`) : name;
    },
  },
};
