import { declareErrors } from '../../../exchange/declare-errors.js';
import { CODE } from '../../../exchange/errors.js';

/** Errors of the backend side of the legacy era. */
export const LEGACY_BACKEND_ERRORS = declareErrors({
  ERAGATE_HANDSHAKE_REFUSED: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} refused the handshake with {answer}',
    hint: 'It may speak another era than backend.era says, or be no MCP server: "detail" has what it answered; "probe" says what it speaks.',
  },
  ERAGATE_HANDSHAKE_TIMEOUT: {
    code: CODE.internal,
    status: { legacy: 200, modern: 504 },
    message: 'The server behind route {route} did not answer initialize in time; try again later',
    hint: 'Find out why the server is slow to answer initialize, or raise timeouts.connect (timeouts.start for a command).',
  },
  ERAGATE_HANDSHAKE_BROKEN: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} broke off the handshake',
    hint: 'Look into the log of the server for what happens on initialize; "detail" says how the connection ended.',
  },
  ERAGATE_ONE_SESSION: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} serves one session at a time, and has one already',
    hint: 'Use a server that serves several sessions, or one on stdio, of which the gateway starts one for each session.',
  },
  ERAGATE_SESSION_NOT_KEPT: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} does not know the session that it has just opened',
    hint: 'A balancer sends requests of one session to several servers: set up sticky sessions by Mcp-Session-Id or cookie.',
  },
  ERAGATE_TOOLS_NOT_LISTED: {
    code: CODE.internal,
    status: 502,
    message:
      'The server behind route {route} did not list its tools, which the gateway needs to make the call',
    hint: 'Look into the log of the server for what happens on tools/list.',
  },
  ERAGATE_TASK_UNREADABLE: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} did not say how its task goes on',
    hint: 'Report it to the maker of the server: tasks/get has to answer with the task (2025-11-25, basic/utilities/tasks).',
  },
  ERAGATE_TASK_LOST: {
    code: CODE.internal,
    status: 200,
    message:
      'The server behind route {route} has lost the session, and with it the task: make the call again',
    hint: 'The server restarted, or a balancer sends requests of one session to several servers: set up sticky sessions.',
  },
});
