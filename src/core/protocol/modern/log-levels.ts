import { type Message, memberValue } from '../message/message.ts';

/** The levels of log messages, the least severe first (2026-07-28, server/utilities/logging; RFC 5424). */
export const severities = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export type LogLevel = (typeof severities)[number];

/** The level that a value names; undefined if it names none. */
export const readLogLevel = (value: unknown): LogLevel | undefined => severities.find((level) => level === value);

/** True if a log message has at least the requested level. False if the client requested no log messages. */
export function isWanted(notification: Message, least: LogLevel | undefined): boolean {
  const level = readLogLevel(memberValue(notification, 'params', 'level'));
  return level !== undefined && least !== undefined && severities.indexOf(level) >= severities.indexOf(least);
}
