/** Something that happens once. Its promise is made on first use: mostly nobody waits for it (a promise costs time). */
export class Milestone {
  hasPassed = false;
  #promise: Promise<void> | undefined;
  #resolve: (() => void) | undefined;

  /** Resolves when the milestone has been passed. */
  get passed(): Promise<void> {
    this.#promise ??= new Promise((resolve) => {
      this.#resolve = resolve;
      if (this.hasPassed) resolve();
    });
    return this.#promise;
  }

  pass(): void {
    this.hasPassed = true;
    this.#resolve?.();
  }
}
