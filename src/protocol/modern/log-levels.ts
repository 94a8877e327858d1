/** The levels of log messages, the least severe first (2026-07-28, server/utilities/logging; RFC 5424). */
const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export type LogLevel = (typeof levels)[number];

/** The level that a value names; undefined if it is none. */
export const readLogLevel = (value: unknown): LogLevel | undefined => levels.find((level) => level === value);

/** True if a message of this level is wanted by one who asked for `least` and above. */
export const isWanted = (level: LogLevel, least: LogLevel): boolean => levels.indexOf(level) >= levels.indexOf(least);
