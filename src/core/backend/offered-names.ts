import { scalarAt } from '../protocol/json.ts';
import { readListItems } from '../protocol/list-page.ts';
import { maxNameLength } from '../protocol/message/call-name.ts';
import type { Message } from '../protocol/message/message.ts';
import { boundedWalks } from '../util/timing/work-meter.ts';
import type { CreateInterceptor } from './link/link.ts';
import { ListWatcher } from './list-watcher.ts';

/** What has a name that clients call. */
export type NamedKind = 'tool' | 'prompt';

/**
 * The names of one kind that are kept for each server, until the gateway ends (P8). Each name is a label of numbers, and
 * a server chooses its names: without the limit, one that lists new names again and again would fill the memory.
 */
const maxNames = 100;

/** A longer page is not read (P8): it would cost more than the names are worth. */
const maxItems = 1_000;
const maxPageBytes = 4 * 1024 * 1024;

/** How long a page with the same length counts as read. A server that each session asks has the same list each time. */
const freshMs = 60_000;

/** The label of every name that is not listed, or is one too many. */
export const otherName = 'other';

/**
 * The names of tools and prompts that servers have listed, as their clients see them. A client can call any name, so only
 * these are labels of numbers.
 */
export class OfferedNames {
  readonly #byServer = new Map<string, NamesOfServer>();

  /** Returns the name if the server has listed it, and `other` for all other names. */
  label(server: string, kind: NamedKind, name: string): string {
    return this.#byServer.get(server)?.[kind].has(name) === true ? name : otherName;
  }

  /** The interceptor that reads the lists of a server. */
  watch(server: string): CreateInterceptor {
    const names = this.#byServer.get(server) ?? new NamesOfServer();
    this.#byServer.set(server, names);
    return () => new ListReader(names);
  }
}

/** The names of one server, and the pages of its lists that were read lately. */
class NamesOfServer {
  readonly tool = new Set<string>();
  readonly prompt = new Set<string>();
  /** When a page of this kind and length was read. One page for each list suffices: most lists have one. */
  readonly #read: Record<NamedKind, { readonly bytes: number; readonly at: number }> = {
    tool: { bytes: 0, at: 0 },
    prompt: { bytes: 0, at: 0 },
  };

  read(kind: NamedKind, response: Message): void {
    const { text, id } = response;
    const bytes = text.length - `${id}`.length;
    const { bytes: known, at } = this.#read[kind];
    const now = performance.now();
    if ((bytes === known && now - at < freshMs) || text.length > maxPageBytes) return;
    this.#read[kind] = { bytes, at: now };
    const names = this[kind];
    boundedWalks(() => {
      const page = readListItems(text, `${kind}s`, maxItems);
      if (typeof page === 'string') return;
      for (const { start, end } of page.items) {
        if (names.size >= maxNames) return;
        const name = scalarAt(text.subarray(start, end), ['name']);
        if (typeof name === 'string') names.add(name.slice(0, maxNameLength));
      }
    });
  }
}

const kinds: ReadonlyMap<string, NamedKind> = new Map([
  ['tools/list', 'tool'],
  ['prompts/list', 'prompt'],
]);

/** Reads the names in the lists of one backend. */
class ListReader extends ListWatcher<NamedKind> {
  readonly #names: NamesOfServer;

  constructor(names: NamesOfServer) {
    super(kinds);
    this.#names = names;
  }

  protected onList(kind: NamedKind, response: Message): void {
    this.#names.read(kind, response);
  }
}
