import { type Logger, pino } from 'pino';
import { LogOutput } from './log-output.ts';
import { type LogLevels, type LogPart, logParts } from './log-parts.ts';
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
 * No line waits in this process, so that the last one before an exit is not lost, but for those that a reader does not take.
 */
export function createLog({ levels, isPretty, hasColors }: LogOptions): Log {
  const asShown = (line: string): string => (isPretty ? prettyLine(line, hasColors) : line);
  const output = new LogOutput({ target: 2, lostLine: (lost) => asShown(lostLine(lost)) });
  process.on('exit', () => output.flush());
  const all = pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line) => output.write(asShown(line)) },
  );
  const parts = logParts.map((part) => [part, all.child({ part }, { level: levels[part] })]);
  return Object.fromEntries(parts) as Record<LogPart, Logger>;
}

/** Changes the levels of a log from now on. Its loggers have no children, which would keep theirs. */
export function setLevels(log: Log, levels: LogLevels): void {
  for (const part of logParts) log[part].level = levels[part];
}

/** As pino writes a warning. */
function lostLine(lost: number): string {
  const msg = `${lost} log lines were lost because the reader of the log was too slow`;
  return `${JSON.stringify({ level: 40, time: new Date().toISOString(), part: 'app', lost, msg })}\n`;
}
