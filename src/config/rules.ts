/** Rules that a JSON Schema cannot express, and warnings about what is valid but probably not meant. */

import { checkBackend } from './backend-rules.js';
import type { ConfigDocument } from './document.js';
import {
  checkHost,
  checkLoop,
  checkOrigins,
  checkTrustedProxies,
  warnOfOpenServer,
  warnOfPublicPath,
} from './listen-rules.js';
import { checkPaths } from './path-rules.js';
import { type Segment, valueAt } from './problems.js';
import { warnOfBareVariables, warnOfMissingProgram, warnOfProxyVariables } from './program-rules.js';
import { checkUrl } from './url-rules.js';

/** Checks the rules for all parts of `document.data` that are of the right type. */
export function checkRules(document: ConfigDocument): void {
  checkUrl(document, ['publicUrl'], { query: false });
  checkHost(document);
  checkTrustedProxies(document);
  checkOrigins(document);
  warnOfMissingSealKeys(document);
  warnOfBareVariables(document, document.data, []);
  const routes = valueAt(document.data, ['routes']);
  if (!Array.isArray(routes)) return;
  checkPaths(document, routes.length);
  for (let i = 0; i < routes.length; i++) {
    const backend: Segment[] = ['routes', i, 'backend'];
    checkBackend(document, backend);
    warnOfOpenServer(document, [...backend, 'command']);
    warnOfMissingProgram(document, backend);
    warnOfProxyVariables(document, [...backend, 'url']);
    checkLoop(document, i);
    warnOfPublicPath(document, i);
    checkLost(document, ['routes', i, 'sessions', 'lost']);
    checkStream(document, ['routes', i, 'timeouts', 'stream']);
  }
}

function warnOfMissingSealKeys(document: ConfigDocument): void {
  const keys = valueAt(document.data, ['sealKeys']);
  if (!Array.isArray(keys) || keys.length > 0) return;
  document.warn(
    [],
    "no sealKeys: client sessions end when the gateway restarts, and replicas cannot serve each other's sessions " +
      '(make a key with: openssl rand -base64 32)',
  );
}

/** Requires a message for status 200, which successful calls have too. */
function checkLost(document: ConfigDocument, segments: readonly Segment[]): void {
  const responses = valueAt(document.data, segments);
  if (!Array.isArray(responses)) return;
  for (let i = 0; i < responses.length; i++) {
    const { status, message } = responses[i] ?? {};
    if (status === 200 && message === undefined) {
      document.report(
        [...segments, i, 'message'],
        'a text that tells the response from others of status 200',
        {
          found: 'nothing',
          at: 'key',
        },
      );
    }
  }
}

/** Rejects `timeouts.stream` without `limits.replay`: clients could not resume a stream that is closed. */
function checkStream(document: ConfigDocument, segments: readonly Segment[]): void {
  const stream = valueAt(document.data, segments);
  const replay = valueAt(document.data, ['limits', 'replay']);
  if (Number(replay) !== 0 || typeof stream !== 'string' || stream === 'off' || document.isReported(segments))
    return;
  document.report(segments, 'off, since limits.replay is 0 and clients cannot resume a stream');
}
