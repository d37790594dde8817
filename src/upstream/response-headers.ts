/** Headers of a response, by lower-cased name; several values of one name are a list. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

const JSON_TYPE = /^\s*application\/(?:[\w.-]+\+)?json\b/i;
const EVENT_STREAM_TYPE = /^\s*text\/event-stream\b/i;

/** Whether the media type is `application/json` or one with the suffix `+json`. */
export function isJson(headers: ResponseHeaders): boolean {
  const type = headers['content-type'];
  return type === 'application/json' || JSON_TYPE.test(String(type ?? ''));
}

export function isEventStream(headers: ResponseHeaders): boolean {
  return EVENT_STREAM_TYPE.test(String(headers['content-type'] ?? ''));
}
