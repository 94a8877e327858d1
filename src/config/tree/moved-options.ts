import type { Option } from '../options/option-kinds.ts';
import { variableOf } from './places.ts';

/** Flags of 0.1.0 that differed from the keys of the file. */
const irregularFlags = new Map([
  ['headers', '--header'],
  ['forwardHeaders', '--forward-header'],
  ['credentials', '--credential'],
  ['apiKeysFile', '--api-keys'],
  ['sse', '--no-sse'],
  ['ws', '--no-ws'],
]);

/** The flag of an option in 0.1.0: `sessionIdleMs` → `--session-idle-ms`. */
export const movedFlagOf = (key: string): string =>
  irregularFlags.get(key) ?? `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** The variable of an option in 0.1.0: `sessionIdleMs` → `GANGWAY_SESSION_IDLE_MS`. */
export const movedVariableOf = (key: string): string => variableOf(key);

/** The option of 0.1.0 that `share` replaces. It has no key any more. */
export const isolationNames = { flag: '--isolation', variable: 'GANGWAY_ISOLATION', key: 'isolation' } as const;

/** The values of `share` by those of `isolation`. */
const shareByIsolation = new Map([
  ['principal', 'user'],
  ['shared', 'all'],
  ['request', 'request'],
  ['auto', 'session'],
]);

/**
 * The fault of `isolation`, which decided who shares a process. Another meaning of the same word would be a risk.
 * @param write writes the option `share` with a value
 */
export function explainIsolation(value: unknown, write: (value: string) => string): string {
  const share = typeof value === 'string' ? shareByIsolation.get(value) : undefined;
  if (share !== undefined) return `was replaced after 0.1.0; use ${write(share)}, which means the same`;
  const all = [...shareByIsolation].map(([old, current]) => `${current} for ${old}`).join(', ');
  return `was replaced after 0.1.0; use ${write('VALUE')} with ${all}`;
}

/**
 * The fault of a name that only 0.1.0 has. Times and sizes have units since then.
 * @param value the value that was given. It is repeated only if it is a number, and no secret is one (P12).
 * @param write writes the option with a value
 */
export function explainMoved(
  name: string,
  { kind, format = String }: Partial<Pick<Option, 'kind' | 'format'>> = {},
  value?: unknown,
  write: (value: string) => string = () => name,
): string {
  const hasNumber = kind === 'duration' || kind === 'size' || kind === 'integer';
  const text = typeof value === 'number' || typeof value === 'string' ? String(value) : '';
  if (hasNumber && /^\d{1,15}$/.test(text)) return `was renamed after 0.1.0; use ${write(format(Number(text)))}`;
  const unit = kind === 'duration' ? ' with a unit, such as 30s' : kind === 'size' ? ' with a unit, such as 4MiB' : '';
  return `was renamed after 0.1.0; use ${name}${unit}`;
}
