import type { FilePosition } from '../issues.ts';
import type { ConfigFile } from './config-file.ts';
import type { Given } from './given-values.ts';
import type { JsoncPositions } from './read-jsonc.ts';

/** The source of a value, for `config print`. */
export interface Origin {
  /** `--port`, `GANGWAY_PORT` or `gangway.json:3:5` */
  readonly place: string;
  /** The value of this source. */
  readonly value: unknown;
  /** The value with its references, if it has any. */
  readonly written: unknown;
}

/** The sources of values, by the key of their option. */
export type Origins = ReadonlyMap<string, Origin>;

/** The positions of the members of each file. */
type Positions = ReadonlyMap<string, JsoncPositions>;

/** The position of a path such as `gangway.json: listen.port`, or of the nearest member above it. */
export function positionOf(path: string, positions: Positions): FilePosition | undefined {
  for (const [file, found] of positions) {
    if (!path.startsWith(`${file}: `)) continue;
    for (
      let member = path.slice(file.length + 2);
      member !== '';
      member = member.replace(/(?:^|\.)[^.[\]]*$|\[[^[\]]*\]$/, '')
    ) {
      const position = found.get(member);
      if (position !== undefined) return { file, ...position };
    }
  }
  return undefined;
}

/** The sources of the values that are set. The first source has precedence. */
export function originsOf(sources: readonly Given[], positions: Positions): Origins {
  const origins = new Map<string, Origin>();
  for (const [key, { path, value, written }] of sources.flatMap((source) => [...source])) {
    const position = positionOf(path, positions);
    const place = position === undefined ? path : `${position.file}:${position.line}:${position.column}`;
    if (!origins.has(key)) origins.set(key, { place, value, written });
  }
  return origins;
}

/** The sources of the own options of each server and view, by its name; also of the command and URL of a server. */
export const serverOriginsOf = (file: ConfigFile | undefined, positions: Positions): ReadonlyMap<string, Origins> =>
  new Map(
    [...(file?.servers ?? []), ...(file?.views ?? [])].map(({ name, given }) => [name, originsOf([given], positions)]),
  );
