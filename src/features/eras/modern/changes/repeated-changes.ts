import type { Message } from '../../../../core/protocol/message/message.ts';

/** How long a reported change is remembered. */
const rememberMs = 1_000;

/** Further texts and longer texts are not remembered but reported each time: a server must not fill the memory (P8). */
const maxTexts = 500;
const maxTextBytes = 1_024;

interface ReportedChange<Source> {
  readonly source: Source;
  /** True if another source has reported the change since. */
  isRepeated: boolean;
  timer: NodeJS.Timeout;
}

/**
 * Reports changes that several sources send, at different times, at most twice. Two equal notifications can be one
 * change or two. But a notification says only that something has changed. So the first is reported at once. Repetitions
 * of other sources within a second are reported once more at its end, so that no change is lost.
 */
export class RepeatedChanges<Source> {
  readonly #report: (change: Message, source: Source) => boolean;
  readonly #reported = new Map<string, ReportedChange<Source>>();

  constructor(report: (change: Message, source: Source) => boolean) {
    this.#report = report;
  }

  /**
   * Takes a change from a source.
   * @param mayRepeat true if other sources may send the same change
   * @returns false if the change could not be passed on
   */
  report(change: Message, source: Source, mayRepeat: boolean): boolean {
    if (change.text.length > maxTextBytes) return this.#report(change, source);
    const key = change.text.toString('latin1');
    const reported = this.#reported.get(key);
    if (reported !== undefined && reported.source !== source) {
      reported.isRepeated = true;
      return true;
    }
    clearTimeout(reported?.timer);
    this.#reported.delete(key);
    if (mayRepeat && this.#reported.size < maxTexts) this.#remember(key, change, source);
    return this.#report(change, source);
  }

  close(): void {
    for (const { timer } of this.#reported.values()) clearTimeout(timer);
    this.#reported.clear();
  }

  #remember(key: string, change: Message, source: Source): void {
    const timer = setTimeout(() => {
      this.#reported.delete(key);
      if (reported.isRepeated) this.#report(change, source);
    }, rememberMs).unref();
    const reported: ReportedChange<Source> = { source, isRepeated: false, timer };
    this.#reported.set(key, reported);
  }
}
