/** The levels of a log, the least important last but for the one that is none. */
export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** A level that `--log-level` accepts. */
export type GatewayLogLevel = (typeof logLevels)[number];

/**
 * The parts of the gateway that log, each with a level of its own: `app` starts, ends and certificates; `http` requests and
 * connections of clients; `auth` keys and tokens; `session` sessions; `modern` processes that clients of 2026-07-28 share;
 * `server` what is found out about servers; `stderr` what they write there; `store` Redis.
 */
export const logParts = ['app', 'http', 'auth', 'session', 'modern', 'server', 'stderr', 'store'] as const;

export type LogPart = (typeof logParts)[number];

/** The least level that each part logs. */
export type LogLevels = Readonly<Record<LogPart, GatewayLogLevel>>;

/** The first item of a text that is wrong, and what of it. */
export interface LogLevelsFault {
  /** Which of the items between commas, from 0. */
  readonly index: number;
  /** It names no part, or no level, that there is; or one that an item before it has given. */
  readonly wrong: 'part' | 'level' | 'repeated';
  /** The name that there is not. */
  readonly name: string;
}

/** Levels, or what of them is wrong. */
export type LogLevelsRead =
  | { readonly ok: true; readonly levels: LogLevels }
  | { readonly ok: false; readonly fault: LogLevelsFault };

/**
 * Reads `info`, or `info,store=debug`: a level for all parts, `info` if none is given, and others for some of them, in any
 * order.
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
