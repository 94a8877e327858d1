/**
 * Variables by which a server finds its files, its programs and its language. Operators keep no secrets in them. The
 * gateway's own environment holds REDIS_URL, tokens and NODE_OPTIONS (P12).
 */
const inheritedNames = new Set(['HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'USER']);

/** Prefix of functions that bash exports; a vulnerable bash runs the text behind them (CVE-2014-6271). */
const shellFunctionPrefix = '()';

/**
 * Returns the whole environment of a server's process.
 * @param parent the environment of the gateway; only names on the allow-list (HOME, PATH, LC_* …) are taken from it
 * @param configured the variables that the operator configured for this server; they take precedence
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
