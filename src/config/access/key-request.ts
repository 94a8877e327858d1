import type { ReportIssue } from '../issues.ts';
import type { CommandLine } from '../sources/command-line.ts';
import { parseDurationMs } from '../units.ts';
import { keyName, keyScope } from './api-key-sources.ts';

/** A key that `mcp-gangway key` makes. */
export interface KeyRequest {
  readonly name: string;
  /** What the key may be used for; without scopes, for everything. */
  readonly scopes: readonly string[];
  /** The end of the key, as the key file has it (RFC 3339); undefined for never. */
  readonly expires: string | undefined;
  /** The key file that gets the entry of the key; undefined to print it. */
  readonly addTo: string | undefined;
}

/**
 * Reads the words and options of `mcp-gangway key`, and reports all faults.
 * @param nowMs the time from which `--expires 90d` counts, in milliseconds since 1970
 * @returns undefined after a fault
 */
export function readKeyRequest(
  name = '',
  flags: CommandLine['flags'],
  nowMs: number,
  report: ReportIssue,
): KeyRequest | undefined {
  const scopes = (flags.get('--scope') ?? []).flatMap((words) => words.split(' ').filter((word) => word !== ''));
  const expires = flags.get('--expires')?.[0];
  const isNamed = keyName.safeParse(name).success;
  if (!isNamed)
    report('key', 'needs the name of a user: mcp-gangway key alice; a name has letters, digits and . _ @ + -');
  const areScopes = scopes.every((scope) => keyScope.safeParse(scope).success);
  if (!areScopes) report('--scope', 'must be a scope, such as gangway:status: visible characters without " and \\');
  const end = expires === undefined ? undefined : endOf(expires, nowMs);
  const hasEnd = end !== undefined || expires === undefined;
  if (!hasEnd)
    report(
      '--expires',
      'must be a time from now, such as 90d or 12h, or a time in the future, such as 2027-01-31T00:00:00Z',
    );
  return isNamed && areScopes && hasEnd ? { name, scopes, expires: end, addTo: flags.get('--add')?.[0] } : undefined;
}

/** The longest life of a key. A longer one is a mistake, or should have no end. */
const longestLifeMs = 100 * 366 * 24 * 3_600_000;

/** The time at the end of a duration, or a time itself; undefined for anything else and for the past. */
function endOf(text: string, nowMs: number): string | undefined {
  const lifeMs = parseDurationMs(text) ?? Date.parse(/^\d{4}-\d{2}-\d{2}(?:T|$)/.test(text) ? text : '') - nowMs;
  if (!(lifeMs > 0 && lifeMs <= longestLifeMs)) return undefined;
  return new Date(nowMs + lifeMs).toISOString().replace(/\.\d+Z$/, 'Z');
}
