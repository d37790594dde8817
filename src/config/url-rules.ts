import type { ConfigDocument } from './document.js';
import { type Segment, valueAt } from './problems.js';
import { expectedText } from './schema.js';

/** Rejects what is not an http or https URL, and URLs with parts that are of no use there. */
export function checkUrl(
  document: ConfigDocument,
  segments: readonly Segment[],
  allow: { query: boolean },
): void {
  const text = valueAt(document.data, segments);
  if (typeof text !== 'string' || text === '') return;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:\/\//i.test(text)) document.report(segments, expectedText(segments));
  else if (url.username !== '' || url.password !== '') {
    document.report(segments, 'a URL without credentials (send them with backend.headers: Authorization)');
  } else if (url.hash !== '') document.report(segments, 'a URL without a fragment (#…)');
  else if (url.search !== '' && !allow.query) document.report(segments, 'a URL without a query (?…)');
}
