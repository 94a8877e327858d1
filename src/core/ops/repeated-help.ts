import { BoundedMap } from '../util/bounded-map.ts';

/** A help text is written once in this time for each server: every client of a broken server causes the same lines. */
const helpIntervalMs = 60_000;

/** The limit for remembered texts (P8). There are a few for each server, so that only thousands of servers reach it. */
const maxRemembered = 1_000;

/** The fields of a log line: the help, or how often it was left out since it was written. */
export type HelpFields = { readonly help?: string | undefined; readonly repeated?: number };

/** Writes the help for a server once a minute, and then counts. */
export class RepeatedHelp {
  readonly #written = new BoundedMap<string, { readonly at: number; count: number }>(maxRemembered);

  /** Returns the fields for a line about a server. */
  of(server: string, help: string | undefined): HelpFields {
    if (help === undefined) return {};
    const key = `${server}\n${help}`;
    const known = this.#written.get(key);
    const now = performance.now();
    if (known !== undefined && now - known.at < helpIntervalMs) {
      known.count += 1;
      return { repeated: known.count };
    }
    this.#written.set(key, { at: now, count: 0 });
    return { help };
  }
}
