import { CODE } from '../../../exchange/errors.js';
import { isLogLevel } from '../../../exchange/log-levels.js';
import {
  errorRope,
  nameMap,
  type RequestFrame,
  Rope,
  resultRope,
  stringMember,
} from '../../../jsonrpc/index.js';
import type { LegacyClientSession } from './session.js';

type OwnMethod = (session: LegacyClientSession, frame: RequestFrame) => Rope | undefined;

const EMPTY_RESULT = Buffer.from('{}');

/** Requests that the gateway responds to itself, by method. A response of undefined passes the request on. */
export const OWN_METHODS: ReadonlyMap<string, OwnMethod> = nameMap({
  ping: (_session, { id }) => resultRope(id, new Rope().push(EMPTY_RESULT)),
  initialize: (_session, { id }) =>
    errorRope(id, CODE.invalidRequest, 'Invalid Request: the session is initialized already'),
  'subscriptions/listen': (_session, { id, method }) =>
    errorRope(id, CODE.methodNotFound, `Method not found: ${method}`),
  'logging/setLevel': (session, { id, bytes, params }) => {
    const level = stringMember(bytes, params, 'level');
    if (!isLogLevel(level))
      return errorRope(id, CODE.invalidParams, 'Invalid params: level is not a log level');
    session.setLogLevel(level);
    return undefined;
  },
});
