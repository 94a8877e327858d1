/** The levels of a log, the least important last but for the one that is none. */
export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** A level that `--log-level` accepts. */
export type LogLevel = (typeof logLevels)[number];

/**
 * The parts of the gateway that log, each with a level of its own: `app` starts, ends and certificates; `http` requests and
 * connections of clients; `auth` keys and tokens; `session` sessions; `modern` processes that clients of 2026-07-28 share;
 * `server` what is found out about servers; `stderr` what they write there; `store` Redis.
 */
export const logParts = ['app', 'http', 'auth', 'session', 'modern', 'server', 'stderr', 'store'] as const;

export type LogPart = (typeof logParts)[number];

/** The least level that each part logs. */
export type LogLevels = Readonly<Record<LogPart, LogLevel>>;

/**
 * Reads `info`, or `info,store=debug`: a level for all parts, `info` if none is given, and others for some of them, in any order.
 * @returns undefined for any other text
 */
export function readLogLevels(text: string): LogLevels | undefined {
  const given = new Map<string, LogLevel>();
  for (const item of text.split(',')) {
    const [, part = '', level] = /^(?:([a-z]+)=)?([a-z]+)$/.exec(item.trim()) ?? [];
    if (!isLevel(level) || given.has(part) || (part !== '' && !(logParts as readonly string[]).includes(part))) {
      return undefined;
    }
    given.set(part, level);
  }
  const common = given.get('') ?? 'info';
  return Object.fromEntries(logParts.map((part) => [part, given.get(part) ?? common])) as Record<LogPart, LogLevel>;
}

const isLevel = (text: string | undefined): text is LogLevel =>
  (logLevels as readonly (string | undefined)[]).includes(text);
