import { type DestinationStream, type Logger, pino } from 'pino';
import { type LogLevels, type LogPart, logParts } from './log-levels.ts';
import { prettyLine } from './pretty-line.ts';

/** The gateway's loggers, by part: who logs is named by the field `part` of its lines, and heard by the level of that part. */
export type Log = Readonly<Record<LogPart, Logger>>;

/** What a log is made with. */
export interface LogOptions {
  readonly levels: LogLevels;
  /** Lines for a person, or JSON. */
  readonly isPretty: boolean;
  /** Whether lines for a person have colours. */
  readonly hasColors: boolean;
}

/**
 * The gateway's log: lines on stderr. stdout is for what a person or script that starts the gateway reads.
 * Written synchronously, so that the last line before an exit is not lost; at `info` there are only a few lines a session.
 */
export function createLog({ levels, isPretty, hasColors }: LogOptions): Log {
  const stderr = pino.destination({ fd: 2, sync: true });
  const pretty: DestinationStream = {
    write: (line) => {
      stderr.write(prettyLine(line, hasColors));
    },
  };
  const all = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, isPretty ? pretty : stderr);
  const parts = logParts.map((part) => [part, all.child({ part }, { level: levels[part] })]);
  return Object.fromEntries(parts) as Record<LogPart, Logger>;
}

/** Changes the levels of a log from now on. Its loggers have no children, which would keep theirs. */
export function setLevels(log: Log, levels: LogLevels): void {
  for (const part of logParts) log[part].level = levels[part];
}
