/** Variables that servers inherit: what programs need to run at all. Keys and tokens of the gateway stay private. */
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
  // Needed by programs on Windows.
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
 * The environment of a server process.
 * @param own that of the gateway
 * @param configured takes precedence over inherited variables
 */
export function childEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  configured: Readonly<Record<string, string>>,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    // Shells export functions as variables, which are code.
    if (value === undefined || value.startsWith('()')) continue;
    // Names are case-insensitive on Windows.
    const upper = process.platform === 'win32' ? name.toUpperCase() : name;
    if (INHERITED.includes(upper) || upper.startsWith(INHERITED_PREFIX)) environment[name] = value;
  }
  return { ...environment, ...configured };
}
