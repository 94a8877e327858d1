// The log: lines on stderr for operators about what the gateway, its sessions and its servers do.

import { type Logger, pino } from 'pino';
import { LineFile } from '../line-file.ts';
import { type LogLevels, type LogPart, logParts } from './log-parts.ts';
import { prettyLine } from './pretty-line.ts';

/** The gateway's loggers. Each part has its own level, and its lines name it in the field `part`. */
export type Log = Readonly<Record<LogPart, Logger>>;

/** The settings of the log. */
export interface LogOptions {
  readonly levels: LogLevels;
  /** Whether lines are for a person or JSON. */
  readonly isPretty: boolean;
  /** Whether lines for a person have colours. */
  readonly hasColors: boolean;
  /** Gets each line as JSON, besides stderr. */
  readonly copy?: LogCopy;
}

/** A second reader of the log, which comes later. It must not throw. */
export interface LogCopy {
  write?: ((line: string) => void) | undefined;
}

/** The limit for lines that wait for a reader (P8): some thousand lines. Further lines are lost. */
const maxWaitingBytes = 1024 * 1024;

const withoutBreak = (line: string): string => line.slice(0, -1);

/**
 * Creates the gateway's log: lines on stderr. stdout belongs to what a person or script that starts the gateway reads.
 * Each line is written at once, so that the last line before an exit is not lost. Only lines that a slow reader does
 * not take wait.
 */
export function createLog({ levels, isPretty, hasColors, copy }: LogOptions): Log {
  const format = (line: string): string => (isPretty ? prettyLine(line, hasColors) : line);
  const output = new LineFile({
    target: 2,
    isAtOnce: true,
    maxQueuedBytes: maxWaitingBytes,
    gapLine: (lost) => withoutBreak(format(formatLossWarning(lost))),
  });
  process.on('exit', () => output.flush());
  const root = pino(
    // Log stores know the words, and not pino's numbers.
    { base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (level) => ({ level }) } },
    {
      write(line) {
        output.write(withoutBreak(format(line)));
        copy?.write?.(line);
      },
    },
  );
  const parts = logParts.map((part) => [part, root.child({ part }, { level: levels[part] })]);
  return Object.fromEntries(parts) as Record<LogPart, Logger>;
}

/** Changes the levels of a log. The loggers have no children, which would keep the old levels. */
export function setLevels(log: Log, levels: LogLevels): void {
  for (const part of logParts) log[part].level = levels[part];
}

/** The warning about lost lines, in the form of pino. */
function formatLossWarning(lost: number): string {
  const msg = `${lost} log lines were lost because the reader of the log was too slow`;
  return `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), part: 'app', lost, msg })}\n`;
}
