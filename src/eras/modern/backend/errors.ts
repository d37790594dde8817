import { declareErrors } from '../../../exchange/declare-errors.js';
import { CODE } from '../../../exchange/errors.js';

/** Errors of the backend side of the modern era. */
export const MODERN_BACKEND_ERRORS = declareErrors({
  ERAGATE_REQUEST_REFUSED: {
    code: CODE.internal,
    status: 200,
    message: 'The server behind route {route} refused the request as the gateway wrote it, with {answer}',
    hint: 'A header or the version that the gateway sends does not suit the server; if it repeats, report it with the message.',
  },
  ERAGATE_RESULT_TYPE: {
    code: CODE.internal,
    status: 200,
    message:
      'The server answered with resultType {type}, for which clients of earlier revisions have no form',
    hint: 'Use a client of revision 2026-07-28 for this call, or a server that answers with a complete result.',
  },
  ERAGATE_INPUT_FAILED: {
    code: CODE.internal,
    status: 200,
    message: 'Cannot request input: {problem}',
    hint: 'The tool needs an answer that the client cannot give or did not give: check which capabilities the client declares.',
  },
  ERAGATE_NOT_SUBSCRIBABLE: {
    code: CODE.invalidParams,
    status: 200,
    message: 'The server does not tell of changes of {uri}',
    hint: 'Subscribe to resources that the server can watch, or read the resource again from time to time.',
  },
  ERAGATE_SUBSCRIPTION_NOT_ACKNOWLEDGED: {
    code: CODE.internal,
    status: { legacy: 200, modern: 504 },
    message: 'The server behind route {route} did not acknowledge the subscription in time',
    hint: 'A server has to acknowledge subscriptions/listen at once: look into its log, or for a proxy that buffers streams.',
  },
  ERAGATE_SUBSCRIPTION_ENDED: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} ended the subscription before acknowledging it',
    hint: 'Look into the log of the server, or for a proxy that ends streams.',
  },
  ERAGATE_TASK_INVALID: {
    code: CODE.internal,
    status: 200,
    message: 'The server behind route {route} answered with what is not a task',
    hint: 'Report it to the maker of the server: a task needs taskId and status (extension io.modelcontextprotocol/tasks).',
  },
  ERAGATE_TASK_WITHOUT_RESULT: {
    code: CODE.internal,
    status: 200,
    message: 'The server behind route {route} gave no result of its completed task',
    hint: 'Report it to the maker of the server: tasks/get of a completed task carries its result.',
  },
});
