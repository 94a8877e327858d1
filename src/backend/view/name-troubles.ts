import { BoundedMap } from '../../util/bounded-map.ts';

/** The names of a view's tools and prompts that clients cannot use as they are. */
export interface NameTroubles {
  /** Names that a view leaves out, because the visible form leads to another server. */
  readonly leftOut: readonly string[];
  /** Names of tools that model APIs refuse. */
  readonly refused: readonly string[];
}

/** What the APIs of the large models accept as the name of a tool. One other name makes them refuse the whole request. */
const acceptedName = /^[A-Za-z0-9_-]{1,64}$/;

/** True for a tool's name that model APIs accept. */
export const isAcceptedName = (name: string): boolean => acceptedName.test(name);

/** How many names an answer or a log line repeats of one kind, and how many characters of each (P8). */
const maxNames = 20;
const maxNameLength = 200;

/** The names to repeat in an answer or a log line. */
export const namesToShow = (names: readonly string[]): readonly string[] =>
  names.slice(0, maxNames).map((name) => name.slice(0, maxNameLength));

/** How many names of one view have been reported (P8). After more, a name may be reported once more. */
const maxReported = 1_000;

/** Reports each name of a view once, however many sessions list it. */
export class NameReports {
  readonly #reported = new BoundedMap<string, true>(maxReported);

  /** The troubles that were not reported before. */
  newIn({ leftOut, refused }: NameTroubles): NameTroubles {
    return { leftOut: this.#unreported('leftOut', leftOut), refused: this.#unreported('refused', refused) };
  }

  #unreported(kind: string, names: readonly string[]): readonly string[] {
    return namesToShow(names).filter((name) => {
      const key = `${kind} ${name}`;
      const isNew = this.#reported.get(key) === undefined;
      this.#reported.set(key, true);
      return isNew;
    });
  }
}
