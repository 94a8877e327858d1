import { memberPath, type ReportIssue } from '../issues.ts';
import type { Environment } from './environment-variables.ts';

/**
 * Replaces `${VAR}` and `${VAR:-default}` in a string, in the strings of a list and in the values of an object, from
 * the environment. As in a shell, `:-` also replaces an empty variable. Other values stay unchanged. A variable that is
 * not set and has no default is a fault. Replaced text is not expanded again.
 */
export function expandVariables(value: unknown, path: string, env: Environment, report: ReportIssue): unknown {
  if (typeof value === 'string') return expandText(value, path, env, report);
  if (Array.isArray(value)) return value.map((item, index) => expandMember(item, memberPath(path, index), env, report));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, expandMember(item, memberPath(path, key), env, report)]),
  );
}

function expandMember(value: unknown, path: string, env: Environment, report: ReportIssue): unknown {
  return typeof value === 'string' ? expandText(value, path, env, report) : value;
}

function expandText(text: string, path: string, env: Environment, report: ReportIssue): string {
  return text.replace(
    /\$\{([A-Za-z_][A-Za-z0-9_]*)(:(-?)([^{}]*))?\}/g,
    (whole, name: string, colon: string | undefined, dash: string | undefined, fallback: string | undefined) => {
      if (colon !== undefined && dash === '') {
        // ${input:token} and ${env:TOKEN} of editors and ${VAR:?…} of shells must not reach a server unexpanded.
        report(path, `\${${name}:…} is not supported; use \${VAR} or \${VAR:-default}`);
        return whole;
      }
      const found = env[name];
      if (found === undefined && fallback === undefined) {
        report(path, `the environment variable ${name} is not set; set it, or write \${${name}:-default}`);
        return whole;
      }
      return fallback === undefined ? (found ?? '') : found || fallback;
    },
  );
}
