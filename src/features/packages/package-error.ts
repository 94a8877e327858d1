/** A package that cannot be installed, or that has no program to start. The message is for the operator. */
export class PackageError extends Error {
  override readonly name = 'PackageError';
  /** The last lines of what has failed, for the operator only. */
  readonly output: readonly string[];

  constructor(message: string, output: readonly string[] = []) {
    super(message);
    this.output = output;
  }
}

/** The most lines of a failed program that are shown. */
const maxLines = 12;

/** The last lines of an output that say something. */
export const lastLines = (output: string): readonly string[] =>
  output
    .split(/\r?\n|\r/)
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-maxLines);
