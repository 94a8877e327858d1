/** How long a reported change is remembered. */
const rememberMs = 1_000;

/** Further texts and longer texts are not remembered but reported each time: a server must not fill the memory (P8). */
const maxTexts = 500;
const maxTextBytes = 1_024;

interface Told<Source> {
  readonly by: Source;
  /** True if another source has reported the change since. */
  isSaidAgain: boolean;
  timer: NodeJS.Timeout;
}

/**
 * Reports changes that several sources send, at different times, at most twice. Two equal notifications can be one
 * change or two. But a notification says only that something has changed. So the first is reported at once. Repetitions
 * of other sources within a second are reported once more at its end, so that no change is lost.
 */
export class RepeatedChanges<Source> {
  readonly #tell: (text: Buffer, source: Source) => boolean;
  readonly #told = new Map<string, Told<Source>>();

  constructor(tell: (text: Buffer, source: Source) => boolean) {
    this.#tell = tell;
  }

  /**
   * Takes a change from a source.
   * @param mayRepeat true if other sources may send the same change
   * @returns false if the change could not be passed on
   */
  take(text: Buffer, source: Source, mayRepeat: boolean): boolean {
    if (text.length > maxTextBytes) return this.#tell(text, source);
    const key = text.toString('latin1');
    const told = this.#told.get(key);
    if (told !== undefined && told.by !== source) {
      told.isSaidAgain = true;
      return true;
    }
    clearTimeout(told?.timer);
    this.#told.delete(key);
    if (mayRepeat && this.#told.size < maxTexts) this.#remember(key, text, source);
    return this.#tell(text, source);
  }

  close(): void {
    for (const { timer } of this.#told.values()) clearTimeout(timer);
    this.#told.clear();
  }

  #remember(key: string, text: Buffer, by: Source): void {
    const timer = setTimeout(() => {
      this.#told.delete(key);
      if (told.isSaidAgain) this.#tell(text, by);
    }, rememberMs).unref();
    const told: Told<Source> = { by, isSaidAgain: false, timer };
    this.#told.set(key, told);
  }
}
