/** The progress of a check. */
export interface CheckProgress {
  readonly total: number;
  readonly done: number;
  /** The names of the servers that are being checked. */
  readonly underWay: readonly string[];
}

/** A line on the terminal that shows the progress and is erased in the end. */
export interface ProgressLine {
  show(progress: CheckProgress): void;
  /** Erases the line, calls `write` for other text, and shows the line again. */
  past(write: () => void): void;
}

/** The part of a terminal that the line needs. */
export interface Terminal {
  /** 0 if the width is unknown. */
  readonly columns: number;
  write(text: string): void;
}

/** Returns to the beginning of the line and erases it (ECMA-48, EL). */
const erase = '\r\u001b[K';

const usualColumns = 80;

/** Creates a line that is rewritten at each change. If stderr is not a terminal, use `createProgressNotes`. */
export function createProgressLine(terminal: Terminal): ProgressLine {
  let shown = '';
  return {
    show({ total, done, underWay }) {
      const text = underWay.length === 0 ? '' : `${done} of ${total} checked; checking ${underWay.join(', ')}`;
      const columns = terminal.columns || usualColumns;
      shown = text.length < columns ? text : `${text.slice(0, columns - 2)}…`;
      terminal.write(erase + shown);
    },
    past(write) {
      terminal.write(erase);
      write();
      terminal.write(shown);
    },
  };
}

/** A server that takes this long is worth a line in a log. */
const noteAfterMs = 10_000;

/** For stderr that is no terminal: a line whenever no check has begun or ended for ten seconds. */
export function createProgressNotes(write: (text: string) => void): ProgressLine {
  let timer: NodeJS.Timeout | undefined;
  return {
    show({ total, done, underWay }) {
      clearInterval(timer);
      if (underWay.length === 0) return;
      const text = `${done} of ${total} checked; still checking ${underWay.join(', ')}\n`;
      timer = setInterval(() => write(text), noteAfterMs).unref();
    },
    past: (print) => print(),
  };
}
