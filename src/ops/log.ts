import { type Logger, pino } from 'pino';

/** The levels that `--log-level` accepts. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/**
 * The gateway's logger: JSON lines on stderr. stdout is for what a person or script that starts the gateway reads.
 * Written synchronously, so that the last line before an exit is not lost; at `info` there are only a few lines a session.
 */
export function createLogger(level: LogLevel): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ fd: 2, sync: true }));
}
