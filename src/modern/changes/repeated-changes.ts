/** So long a change that was told is remembered. */
const rememberMs = 1_000;

/** More texts, and longer ones, are not remembered, but told each time: a server must not fill the memory with them (P8). */
const maxTexts = 500;
const maxTextBytes = 1_024;

interface Told<Source> {
  readonly by: Source;
  /** Another source has said it since. */
  isSaidAgain: boolean;
  timer: NodeJS.Timeout;
}

/**
 * Changes that several sources tell of, each in its own time. Whether two say the same change or one each cannot be known, but
 * a notification says no more than that something has changed. So the first is told at once, and what other sources say of it
 * within a second is told once more at the end of that: no change is left untold, and none is told more than twice.
 */
export class RepeatedChanges<Source> {
  readonly #tell: (text: Buffer, source: Source) => boolean;
  readonly #told = new Map<string, Told<Source>>();

  constructor(tell: (text: Buffer, source: Source) => boolean) {
    this.#tell = tell;
  }

  /**
   * A source tells of a change.
   * @param mayRepeat others may tell of the same one
   * @returns false if it could not be passed on
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
