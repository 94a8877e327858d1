import { abbreviateName, memberPath } from '../issues.ts';
import type { ReferenceSources } from '../sources/expand-variables.ts';
import type { Given } from '../sources/given-values.ts';

/** Programs that replace variables in their arguments themselves. */
const shell = /(?:^|[/\\\s])(?:(?:ba|da|a|z|k|fi)?sh|cmd|powershell|pwsh)(?:\.exe)?(?:\s|$)/i;

/**
 * Warns of `$HOME` and of `~/…` in a server's command, arguments, folder and variables. They reach the server as they
 * are, because the gateway starts it without a shell. A name after `$` counts only if the environment has that variable.
 */
export function noteShellSyntax(
  given: Given,
  { env, note }: Pick<ReferenceSources, 'env'> & { readonly note: (path: string, warning: string) => void },
): void {
  const words = (['command', 'args'] as const).flatMap((key) => textsOf(given, key));
  const usesShell = words.some(({ text }) => shell.test(text));
  for (const { path, text } of [...(usesShell ? [] : words), ...textsOf(given, 'cwd'), ...textsOf(given, 'env')]) {
    const name = [...text.matchAll(/\$([A-Za-z_]\w*)/g)].find(([, each = '']) => env?.[each] !== undefined)?.[1];
    if (name !== undefined) {
      const shown = abbreviateName(name);
      note(path, `has $${shown}, which is not replaced, because no shell reads it; write \${${shown}}`);
    }
  }
  for (const { path } of [...textsOf(given, 'command'), ...textsOf(given, 'cwd')].filter(({ text }) =>
    /^~\//.test(text),
  ))
    note(path, 'begins with ~, which is not replaced, because no shell reads it; write ${HOME}');
}

/** The texts of a key as they are written, with the path of each. */
function textsOf(given: Given, key: string): { readonly path: string; readonly text: string }[] {
  const found = given.get(key);
  if (found === undefined) return [];
  const value = found.written ?? found.value;
  if (typeof value === 'string') return [{ path: found.path, text: value }];
  const isList = Array.isArray(value);
  return Object.entries(value ?? {}).flatMap(([name, text]) =>
    typeof text === 'string' ? [{ path: memberPath(found.path, isList ? Number(name) : name), text }] : [],
  );
}
