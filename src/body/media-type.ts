/** Value of `Content-Type`, as node and undici give it: a list where the header came more than once. */
type ContentType = string | readonly string[] | undefined;

const JSON_TYPE = 'application/json';
/** Servers use types of their own for JSON (`application/vnd.api+json`), and put other things behind the type. */
const ANY_JSON = /^\s*application\/(?:[\w.-]+\+)?json\b/i;
const EVENT_STREAM = /^\s*text\/event-stream\b/i;

/** Whether a body is JSON of any type, `application/json` or one with the suffix `+json`. */
export function isJson(contentType: ContentType): boolean {
  return contentType === JSON_TYPE || ANY_JSON.test(String(contentType ?? ''));
}

export function isEventStream(contentType: ContentType): boolean {
  return EVENT_STREAM.test(String(contentType ?? ''));
}

/**
 * Whether a body is of the one type that MCP messages of clients have: `application/json` in UTF-8, which JSON is in
 * unless a charset says otherwise (RFC 8259, section 8.1).
 */
export function isMessageType(contentType: string): boolean {
  if (contentType === JSON_TYPE) return true;
  const [type = '', ...parameters] = contentType.toLowerCase().split(';');
  return type.trim() === JSON_TYPE && parameters.every(allowsUtf8);
}

function allowsUtf8(parameter: string): boolean {
  const [name = '', value = ''] = parameter.split('=');
  return name.trim() !== 'charset' || /^\s*(?:utf-?8|"utf-?8")\s*$/.test(value);
}
