import { type RequestId, Rope, resultRope } from '../../jsonrpc/index.js';
import type { Answer } from '../../transports/answer.js';
import { META } from './names.js';

/**
 * Answers `subscriptions/listen` where nothing of what was asked for can be delivered: acknowledged with the empty
 * filter and ended in the proper way (basic/patterns/subscriptions, "Acknowledgment"), so that the client knows.
 */
export function answerListenWithNothing(answer: Answer, id: RequestId, serverInfo: string | undefined): void {
  const subscription = `${JSON.stringify(META.subscriptionId)}:${id}`;
  answer.openStream();
  answer.event(
    new Rope().push(
      `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{${subscription}},"notifications":{}}}`,
    ),
  );
  answer.end(200, listenEnd(id, serverInfo));
}

/** The result that ends a subscription gracefully. */
export function listenEnd(id: RequestId, serverInfo: string | undefined): Rope {
  const subscription = `${JSON.stringify(META.subscriptionId)}:${id}`;
  const info = serverInfo === undefined ? '' : `,${JSON.stringify(META.serverInfo)}:${serverInfo}`;
  return resultRope(id, new Rope().push(`{"resultType":"complete","_meta":{${subscription}${info}}}`));
}
