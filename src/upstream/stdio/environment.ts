/**
 * What a server that is started gets to see of the gateway's own environment: what programs need in order to run at
 * all. Keys and tokens of the gateway are none of its business.
 */
const INHERITED: readonly string[] = [
  'PATH',
  'HOME',
  'LANG',
  'LANGUAGE',
  'TMPDIR',
  'TZ',
  'USER',
  'LOGNAME',
  'SHELL',
  'TERM',
  // Windows, where nothing runs without some of them.
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
];
const INHERITED_PREFIX = 'LC_';

/**
 * The environment of a server.
 * @param own the gateway's
 * @param configured wins over what is inherited
 */
export function childEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  configured: Readonly<Record<string, string>>,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    // Exported functions of a shell look like variables, and are code.
    if (value === undefined || value.startsWith('()')) continue;
    // Windows does not tell names apart by case.
    const upper = process.platform === 'win32' ? name.toUpperCase() : name;
    if (INHERITED.includes(upper) || upper.startsWith(INHERITED_PREFIX)) environment[name] = value;
  }
  return { ...environment, ...configured };
}
