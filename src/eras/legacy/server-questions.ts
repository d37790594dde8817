import { CODE, QuestionRefused, QuestionWithdrawn } from '../../exchange/errors.js';
import type { Answer, ForwardedHeaders, Question } from '../../exchange/types.js';
import type { RequestFrame } from '../../jsonrpc/index.js';
import { answerFor } from './answers.js';
import type { BackendSession } from './backend-session.js';
import { featuresFor } from './revisions.js';

const EMPTY_RESULT = Buffer.from('{}');

/** Whoever answers the requests of a server. */
export interface Answering {
  /** The credentials of now. */
  readonly forwarded: ForwardedHeaders;
  /** The server waits for no answer any more. */
  readonly over: boolean;
  /** @throws QuestionRefused where there is no answer to be had, QuestionWithdrawn where none is wanted any more */
  answerTo(question: Question): Promise<Answer>;
}

/** Answers a request of a server, one way or the other; never throws. */
export async function answerServer(
  session: BackendSession,
  { id, method, params, bytes }: RequestFrame,
  by: Answering,
): Promise<void> {
  if (method === 'ping') {
    session.answer(id, { result: EMPTY_RESULT }, by.forwarded);
    return;
  }
  try {
    const answer = await by.answerTo({ id, method, params, bytes });
    if (by.over) return;
    session.answer(id, answerFor(method, answer, featuresFor(session.info.revision)), by.forwarded);
  } catch (error) {
    if (by.over || error instanceof QuestionWithdrawn) return;
    const code = error instanceof QuestionRefused ? error.code : CODE.internal;
    session.refuse(id, (error as Error).message, by.forwarded, code);
  }
}
