/** How far a check is. */
export interface CheckProgress {
  readonly total: number;
  readonly done: number;
  /** The names of the servers that are being tried. */
  readonly underWay: readonly string[];
}

/** What is under way, on a line that is gone in the end. */
export interface ProgressLine {
  show(progress: CheckProgress): void;
  /** Has something else written, which the line must not be mixed with. */
  past(write: () => void): void;
}

/** A terminal as far as the line needs it. */
export interface Terminal {
  /** 0 where it does not say how wide it is. */
  readonly columns: number;
  write(text: string): void;
}

/** Back to the beginning of the line, which is erased to its end (ECMA-48, EL). */
const erase = '\r\u001b[K';

const usualColumns = 80;

/** A line that is written anew whenever something changes. A program or file that reads stderr gets `noProgressLine`. */
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

/** Where nobody watches. */
export const noProgressLine: ProgressLine = {
  show: () => undefined,
  past: (write) => write(),
};
