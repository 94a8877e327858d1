import { createHash } from 'node:crypto';
import { parseBounded } from '../../core/protocol/json.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';
import { isObject } from '../../core/util/is-object.ts';
import { loadLibrary } from '../../core/util/load-library.ts';

/** A tool in the index, by its position in the list. */
interface Entry {
  readonly id: number;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly parameters: string;
}

/** A tool with a longer text cannot be found by its description (P8). */
const maxToolBytes = 64 * 1024;
/** Tools that are added in one turn of the event loop (P8). */
const toolsOfTurn = 50;
/** A longer query is cut (P8). */
const maxQueryLength = 500;
/** Shorter words must match whole. */
const shortestPrefix = 3;
const shortestFuzzy = 5;
const mostFuzzy = 0.2;

/** The positions of the tools that match, the best first. */
type FindTools = (query: string, isWanted: (tool: number) => boolean) => readonly number[];

/** The tools of a view, to be found by their words (BM25). */
export class ToolIndex {
  readonly #tools: readonly Buffer[];
  readonly #names: readonly string[];
  readonly #positions: ReadonlyMap<string, number>;
  readonly #find: FindTools;

  private constructor(tools: readonly Buffer[], names: readonly string[], find: FindTools) {
    this.#tools = tools;
    this.#names = names;
    this.#positions = new Map(names.map((name, at) => [name, at]));
    this.#find = find;
  }

  /** @param tools as JSON text */
  static async of(tools: readonly Buffer[]): Promise<ToolIndex> {
    const entries = tools.map(entryOf);
    const MiniSearch = loadLibrary('minisearch');
    const engine = new MiniSearch({
      fields: ['name', 'title', 'description', 'parameters'],
      tokenize: wordsOf,
      searchOptions: {
        boost: { name: 3, title: 2 },
        prefix: (word) => word.length >= shortestPrefix,
        fuzzy: (word) => (word.length >= shortestFuzzy ? mostFuzzy : false),
      },
    });
    await engine.addAllAsync(entries, { chunkSize: toolsOfTurn });
    const find: FindTools = (query, isWanted) =>
      engine.search(query.slice(0, maxQueryLength), { filter: ({ id }) => isWanted(id) }).map(({ id }) => id);
    return new ToolIndex(
      tools,
      entries.map(({ name }) => name),
      find,
    );
  }

  /** The best matches, as JSON text. */
  search(query: string, limit: number, mayCall: (tool: string) => boolean): readonly Buffer[] {
    const found = this.#find(query, (at) => mayCall(this.#names[at] ?? ''));
    return found.slice(0, limit).map((at) => this.#tools[at] as Buffer);
  }

  /** A tool, as JSON text; undefined if there is none with this name. */
  get(name: string): Buffer | undefined {
    const at = this.#positions.get(name);
    return at === undefined ? undefined : this.#tools[at];
  }
}

function entryOf(text: Buffer, id: number): Entry {
  const tool = parseBounded(text, maxToolBytes);
  const { name, title, description, inputSchema } = isObject(tool) ? tool : {};
  const properties = isObject(inputSchema) && isObject(inputSchema['properties']) ? inputSchema['properties'] : {};
  const parameters = Object.entries(properties).map(
    ([key, schema]) => `${key} ${isObject(schema) ? textOf(schema['description']) : ''}`,
  );
  return {
    id,
    name: textOf(name),
    title: textOf(title),
    description: textOf(description),
    parameters: parameters.join(' '),
  };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The words of a text: `createIssue` and `create_issue` have two. */
const wordsOf = (text: string): string[] =>
  text.split(/[^\p{L}\p{N}]+|(?<=\p{Ll})(?=\p{Lu})/u).filter((word) => word !== '');

/** Indexes that are kept: sessions of one view mostly have the same list (P8). */
const maxIndexes = 8;

/** The indexes of a view, by their lists. */
export class ToolIndexes {
  readonly #byDigest = new BoundedMap<string, Promise<ToolIndex>>(maxIndexes);

  /** The index of a list, which is made once. */
  of(tools: readonly Buffer[]): Promise<ToolIndex> {
    const hash = createHash('sha256');
    for (const tool of tools) hash.update(tool).update('\n');
    const digest = hash.digest('base64url');
    const index = this.#byDigest.get(digest) ?? ToolIndex.of(tools.map((tool) => Buffer.from(tool)));
    this.#byDigest.set(digest, index); // it is the newest one now
    return index;
  }
}
