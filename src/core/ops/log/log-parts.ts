/** The log levels, most severe first. `silent` logs nothing. */
export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** A level that `--log-level` accepts. */
export type GatewayLogLevel = (typeof logLevels)[number];

/**
 * The parts of the gateway that log, each with its own level.
 *
 * `app`: starts, ends and certificates. `http`: requests and connections of clients. `auth`: keys and tokens.
 * `session`: sessions. `modern`: processes that clients of 2026-07-28 share. `server`: what the gateway detects about
 * servers. `stderr`: what servers write there. `store`: Redis.
 */
export const logParts = ['app', 'http', 'auth', 'session', 'modern', 'server', 'stderr', 'store'] as const;

export type LogPart = (typeof logParts)[number];

/** The least severe level that each part logs. */
export type LogLevels = Readonly<Record<LogPart, GatewayLogLevel>>;

/** The first invalid item of a text of levels. */
export interface LogLevelsFault {
  /** The position of the item between commas, from 0. */
  readonly index: number;
  /** `part` and `level`: the name is unknown. `repeated`: an earlier item has set the same level. */
  readonly wrong: 'part' | 'level' | 'repeated';
  /** The unknown or repeated name. */
  readonly name: string;
}

/** The result of `readLogLevels`. */
export type LogLevelsRead =
  | { readonly ok: true; readonly levels: LogLevels }
  | { readonly ok: false; readonly fault: LogLevelsFault };

/**
 * Reads levels such as `info` or `info,store=debug`, in any order: a level for all parts, `info` by default, and levels
 * for some parts.
 */
export function readLogLevels(text: string): LogLevelsRead {
  const given = new Map<string, GatewayLogLevel>();
  for (const [index, item] of text.split(',').entries()) {
    const [, part, level = ''] = /^(?:([^=]*)=)?(.*)$/s.exec(item.trim()) ?? [];
    const refused = (wrong: LogLevelsFault['wrong'], name: string): LogLevelsRead => ({
      ok: false,
      fault: { index, wrong, name },
    });
    if (part !== undefined && !isOneOf(logParts, part)) return refused('part', part);
    if (!isOneOf(logLevels, level)) return refused('level', level);
    if (given.has(part ?? '')) return refused('repeated', part ?? level);
    given.set(part ?? '', level);
  }
  const common = given.get('') ?? 'info';
  const levels = Object.fromEntries(logParts.map((part) => [part, given.get(part) ?? common]));
  return { ok: true, levels: levels as Record<LogPart, GatewayLogLevel> };
}

const isOneOf = <T extends string>(known: readonly T[], text: string): text is T =>
  (known as readonly string[]).includes(text);
