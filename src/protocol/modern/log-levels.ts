import { type Message, memberValue } from '../message/message.ts';

/** The levels of log messages, the least severe first (2026-07-28, server/utilities/logging; RFC 5424). */
const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export type LogLevel = (typeof levels)[number];

/** The level that a value names; undefined if it is none. */
export const readLogLevel = (value: unknown): LogLevel | undefined => levels.find((level) => level === value);

/** True if a log message is wanted by one who asked for `least` and above; nobody wants any who asked for none. */
export function isWanted(notification: Message, least: LogLevel | undefined): boolean {
  const level = readLogLevel(memberValue(notification, 'params', 'level'));
  return level !== undefined && least !== undefined && levels.indexOf(level) >= levels.indexOf(least);
}
