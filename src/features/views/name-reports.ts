import { namesToShow } from '../../config/servers/view-names.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';

/** The names of a view's tools and prompts that clients cannot use as they are. */
export interface NameTroubles {
  /** Names that a view leaves out, because the visible form leads to another server. */
  readonly leftOut: readonly string[];
  /** Names of tools that model APIs refuse. */
  readonly refused: readonly string[];
}

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
