import { createHash } from 'node:crypto';
import { scalarAt } from '../protocol/json.ts';
import { readListItems, unitsOfItem } from '../protocol/list-page.ts';
import { type Message, memberRange } from '../protocol/message/message.ts';
import { listOf } from '../protocol/methods/methods.ts';
import { contain, detach } from '../util/boundary.ts';
import { actOnEach, boundedWalks } from '../util/timing/work-meter.ts';
import type { NamedItem } from './filter-rules.ts';
import { AnswerWatcher } from './link/answer-watcher.ts';
import type { CreateInterceptor, Outgoing } from './link/link.ts';

/** What has a name that clients call. */
export type NamedKind = 'tool' | 'prompt';

/** Gets each tool and prompt that a server lists, in the order of the lists. The same page comes once. */
export type ListSubscriber = (item: NamedItem, kind: NamedKind) => void;

/** The lists of one backend that are awaited at the same time (P8). Others are not read. */
const maxAwaited = 16;

/** A longer page is not read (P8). */
const maxPageBytes = 4 * 1024 * 1024;

/** The pages of one server that wait until an earlier one is read (P8). Others are not read. */
const maxWaiting = 4;

const kinds: ReadonlyMap<string | undefined, NamedKind> = new Map([
  ['tools/list', 'tool'],
  ['prompts/list', 'prompt'],
]);

const lists = { tool: listOf('tools/list'), prompt: listOf('prompts/list') };

/**
 * The interceptor that reads the lists of a server, once for all who need to know what is in them. It changes nothing.
 * Sessions mostly get the same list one after the other: a page that is equal to the last one of its kind is not read.
 * @param subscribers undefined for those who need nothing; without any, nothing is read
 */
export function readLists(subscribers: readonly (ListSubscriber | undefined)[]): readonly CreateInterceptor[] {
  const present = subscribers.filter((each) => each !== undefined);
  if (present.length === 0) return [];
  const pages = new PageReader(present);
  return [() => new ListReader(pages)];
}

/** Reads the pages of all backends of one server, one after the other. */
class PageReader {
  readonly #subscribers: readonly ListSubscriber[];
  /** The digests of the newest pages. */
  readonly #latest: Partial<Record<NamedKind, string>> = {};
  #reading: Promise<void> | undefined;
  #waiting = 0;

  constructor(subscribers: readonly ListSubscriber[]) {
    this.#subscribers = subscribers;
  }

  read(kind: NamedKind, page: Message): void {
    if (this.#reading === undefined) return this.#begin(kind, page);
    if (this.#waiting >= maxWaiting || page.text.length > maxPageBytes) return;
    this.#waiting += 1;
    const next = (): void => {
      this.#waiting -= 1;
      this.read(kind, page);
    };
    detach('backend', this.#reading.then(next));
  }

  #begin(kind: NamedKind, page: Message): void {
    const { text } = page;
    const result = memberRange(page, 'message', 'result');
    if (result === undefined || text.length > maxPageBytes) return;
    const digest = createHash('sha256').update(text.subarray(result.start, result.end)).digest('base64');
    if (digest === this.#latest[kind]) return;
    this.#latest[kind] = digest;
    const list = readListItems(text, lists[kind].list.key);
    if (typeof list === 'string') return;
    const reading = actOnEach(list.items, unitsOfItem, ({ start, end }) => this.#tell(text.subarray(start, end), kind));
    this.#reading = reading?.finally(() => {
      this.#reading = undefined;
    });
    detach('backend', this.#reading);
  }

  #tell(text: Buffer, kind: NamedKind): void {
    boundedWalks(() => {
      const name = scalarAt(text, ['name']);
      if (typeof name === 'string') for (const tell of this.#subscribers) tell({ name, text }, kind);
    });
  }
}

/** Reads the lists of one backend. */
class ListReader extends AnswerWatcher<NamedKind> {
  readonly #pages: PageReader;

  constructor(pages: PageReader) {
    super();
    this.#pages = pages;
  }

  override onSend(outgoing: Outgoing): Outgoing {
    const { message } = outgoing;
    const listed = message.kind === 'request' ? kinds.get(message.method) : undefined;
    if (listed !== undefined && this.watched < maxAwaited) this.note(message, listed);
    return outgoing;
  }

  protected override onAnswer(response: Message, kind: NamedKind): Message {
    // To watch a list must not cost a client the list.
    if (!response.isError) contain('backend', () => this.#pages.read(kind, response));
    return response;
  }
}
