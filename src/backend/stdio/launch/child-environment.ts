/**
 * What a server needs to find its files, its programs and its language, and nothing in which an operator keeps secrets:
 * the gateway's own environment holds REDIS_URL, tokens and NODE_OPTIONS (P12).
 */
const inheritedNames = new Set(['HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'USER']);

/** Functions that bash exports start so; a vulnerable bash runs what follows them (CVE-2014-6271). */
const shellFunctionPrefix = '()';

/**
 * The whole environment of a server's process.
 * @param parent the environment of the gateway; only names on the allow-list (HOME, PATH, LC_* …) are taken from it
 * @param configured what the operator's configuration names for this server; wins
 */
export function childEnvironment(
  parent: Readonly<Record<string, string | undefined>>,
  configured: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const environment = new Map<string, string>();
  for (const [name, value] of Object.entries(parent)) {
    const isInherited = inheritedNames.has(name) || name.startsWith('LC_');
    if (isInherited && value !== undefined && !value.startsWith(shellFunctionPrefix)) environment.set(name, value);
  }
  for (const [name, value] of Object.entries(configured)) environment.set(name, value);
  return Object.fromEntries(environment);
}
