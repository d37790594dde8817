const USUAL = 'application/json';

/** Whether `Content-Type` says JSON in UTF-8, which JSON is in wherever nothing else is said (RFC 8259, section 8.1). */
export function isJson(contentType: string): boolean {
  if (contentType === USUAL) return true;
  const [type = '', ...parameters] = contentType.toLowerCase().split(';');
  return type.trim() === USUAL && parameters.every(isHarmless);
}

function isHarmless(parameter: string): boolean {
  const [name = '', value = ''] = parameter.split('=');
  return name.trim() !== 'charset' || /^\s*(?:utf-?8|"utf-?8")\s*$/.test(value);
}
