import { readFileSync } from 'node:fs';

/** Version of the package, from its package.json one level above both `src` and `dist`. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version;

/** JSON text of the Implementation with which the gateway names itself where it speaks for itself. */
export const OWN_INFO: string = JSON.stringify({ name: 'eragate', title: 'Eragate', version: VERSION });
