import type { Reason, RequestId } from '../protocol/faults.ts';
import { scalarAt } from '../protocol/json.ts';
import { readListItems } from '../protocol/list-page.ts';
import { maxNameLength } from '../protocol/message/call-name.ts';
import type { Message } from '../protocol/message/message.ts';
import { contain } from '../util/boundary.ts';
import { boundedWalks } from '../util/timing/work-meter.ts';
import type { RequestIds } from './backend.ts';
import { type CreateInterceptor, Interceptor, type Outgoing } from './link/link.ts';

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

/** The lists of one backend that are awaited at the same time (P8). Others are not read. */
const maxAwaited = 16;

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

const kinds: ReadonlyMap<string | undefined, NamedKind> = new Map([
  ['tools/list', 'tool'],
  ['prompts/list', 'prompt'],
]);

/** Reads the names in the lists of one backend. */
class ListReader extends Interceptor {
  readonly #names: NamesOfServer;
  readonly #awaited = new Map<RequestId, NamedKind>();

  constructor(names: NamesOfServer) {
    super();
    this.#names = names;
  }

  override onSend(outgoing: Outgoing): Outgoing {
    const { kind, method, id } = outgoing.message;
    const listed = kind === 'request' ? kinds.get(method) : undefined;
    if (listed !== undefined && this.#awaited.size < maxAwaited) this.#awaited.set(id as RequestId, listed);
    return outgoing;
  }

  override onMessages(messages: readonly Message[]): readonly Message[] {
    for (const message of this.#awaited.size === 0 ? [] : messages) {
      if (message.kind !== 'response' || message.id == null) continue;
      const kind = this.#awaited.get(message.id);
      if (kind === undefined) continue;
      this.#awaited.delete(message.id);
      // A number must not cost a client its list.
      if (!message.isError) contain('backend', () => this.#names.read(kind, message));
    }
    return messages;
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void {
    for (const id of ids) this.#awaited.delete(id);
    this.passUnanswered(ids, reason, isFinal);
  }
}
