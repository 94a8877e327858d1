import type { RequestId } from '../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../core/protocol/ids/own-ids.ts';
import { walkPages } from '../../core/protocol/list-page.ts';
import { changedMessage, withId } from '../../core/protocol/message/changed-message.ts';
import { putMembers } from '../../core/protocol/message/edit-members.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import {
  cancelled,
  createMessage,
  emptyResult,
  type Message,
  memberRange,
  memberValue,
} from '../../core/protocol/message/message.ts';
import type { ListMethod } from '../../core/protocol/methods/methods.ts';
import { contain, detach } from '../../core/util/boundary.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';
import { hasRoomFor, inOwnTurns } from '../../core/util/timing/work-meter.ts';
import type { Member } from './member.ts';
import type { View } from './view.ts';
import {
  type Cursors,
  emptyPage,
  type MemberPage,
  mergePages,
  readCursor,
  readPage,
  resourceLists,
  writeCursor,
} from './view-lists.ts';

/** A request of the view: its response, or undefined if the server does not answer in time. */
interface Asked {
  readonly outcome: Promise<Message | undefined>;
  cancel(why: string): void;
}

/** The answers to a list request of the client. */
interface Gathered {
  readonly id: RequestId;
  readonly list: ListMethod;
  readonly cursors: Cursors | undefined;
  /** The servers that were asked, and their responses. */
  readonly ready: readonly Member[];
  readonly responses: readonly (Message | undefined)[];
  /** The servers that were not asked. */
  readonly missing: readonly Member[];
}

/** Sends one request of a client to several servers, and merges their answers. */
export class FanOut {
  readonly #view: View;
  /** Cancels the requests of the client that several servers have. */
  readonly #open = new Map<RequestId, () => void>();
  #learning: Promise<void> | undefined;
  readonly #late: LateLists;

  constructor(view: View) {
    this.#view = view;
    this.#late = new LateLists(view);
  }

  /** Answers a list request with the lists of all servers that are ready. It does not wait for those that were silent. */
  list(request: Message, list: ListMethod, headers: ForwardedHeaders | undefined): void {
    const { members, absences, parts } = this.#view;
    const id = request.id as RequestId;
    const cursor = memberRange(request, 'params', 'cursor') && memberValue(request, 'params', 'cursor');
    const cursors = cursor === undefined || cursor === null ? undefined : readCursor(cursor);
    if (cursor != null && cursors === undefined) return this.#view.refuse(request, 'bad_cursor');
    const asked = members.filter((each) => (cursors === undefined ? each.mayHave(list) : cursors.has(each.name)));
    const up = asked.filter((each) => each.isReady);
    const prompt = up.filter(({ name }) => !absences.has(name, 'lists'));
    const ready = prompt.length > 0 ? prompt : up;
    const silent = up.filter((each) => !ready.includes(each));
    const down = (cursors === undefined ? members : asked).filter((each) => !each.isReady);
    for (const { name } of down) parts.onUnavailable(name, 'down');
    for (const member of silent) {
      parts.onUnavailable(member.name, 'silent');
      this.#late.ask(member, this.#pageRequest(request, cursors, member), headers);
    }
    const missing = members.filter((each) => down.includes(each) || silent.includes(each));
    const pages = ready.map((member) => this.ask(member, this.#pageRequest(request, cursors, member), headers, list));
    this.#open.set(id, () => {
      for (const { cancel } of pages) cancel('The client has cancelled the request.');
    });
    const merged = Promise.all(pages.map(({ outcome }) => outcome)).then((responses) =>
      this.#merge({ id, list, cursors, ready, missing, responses }),
    );
    detach('backend', merged);
  }

  /** Answers a list request, once all servers have answered. What is large is done in turns of its own (P8). */
  async #merge({ id, list, cursors, ready, missing, responses }: Gathered): Promise<void> {
    const found: (MemberPage | undefined)[] = [];
    // In the order of the servers, so that the first one of two gets a URI.
    for (const [index, response] of responses.entries()) {
      if (!this.#open.has(id)) return; // cancelled
      const page = this.#read(response, list, ready[index] as Member, cursors);
      found.push(page instanceof Promise ? await page : page);
    }
    const failed = ready.filter((_, index) => found[index] === undefined);
    const next = new Map(
      ready.flatMap(({ name }, index) => {
        const nextCursor = found[index]?.nextCursor;
        return nextCursor === undefined ? [] : [[name, nextCursor] as const];
      }),
    );
    const unavailable = [...missing, ...failed].map(({ name }) => name);
    const read = found.filter((page) => page !== undefined);
    const isFailed = read.length === 0 && failed.length > 0;
    const respond = (): true => {
      if (!this.#open.delete(id)) return true; // cancelled
      const text = isFailed ? undefined : mergePages(JSON.stringify(id), list, read, writeCursor(next), unavailable);
      this.#view.answer(
        text === undefined
          ? createFaultResponse('view_unavailable', id)
          : changedMessage(emptyResult({ id }), text, {}),
      );
      return true;
    };
    const bytes = responses.reduce((sum, response) => sum + (response?.text.length ?? 0), 0);
    if (hasRoomFor(bytes)) respond();
    else await inOwnTurns(respond, bytes);
  }

  /** Sends a request to several servers, and answers it when all of them have: with a result if one has. */
  broadcast(request: Message, targets: readonly Member[], headers: ForwardedHeaders | undefined): void {
    const id = request.id as RequestId;
    const sent = targets.map((member) => this.ask(member, withId(request, nextOwnId()), headers));
    this.#open.set(id, () => undefined);
    const merged = Promise.all(sent.map(({ outcome }) => outcome)).then((responses) => {
      if (!this.#open.delete(id)) return; // cancelled
      const answered = responses.filter((response) => response !== undefined);
      const best = answered.find(({ isError }) => !isError) ?? answered[0];
      if (best !== undefined) this.#view.answer(withId(best, id));
      else if (targets.length > 0) this.#view.answer(createFaultResponse('view_unavailable', id));
      else this.#view.answer(emptyResult({ id }));
    });
    detach('backend', merged);
  }

  /** Cancels a request of the client that several servers have. False if there is none. */
  cancel(id: RequestId): boolean {
    const cancel = this.#open.get(id);
    this.#open.delete(id);
    cancel?.();
    return cancel !== undefined;
  }

  /** Reads the resources and templates of all servers, so that URIs can be routed. */
  learnUris(headers: ForwardedHeaders | undefined): Promise<void> {
    this.#learning ??= this.#learnAll(headers).finally(() => {
      this.#learning = undefined;
    });
    return this.#learning;
  }

  /**
   * Sends a request of the view. The outcome is undefined if the server does not answer in time.
   * @param awaited the list that is asked for: its answer is of use when it is late, too. With `all`, the request has no
   *   time limit of the view: the client waits for this server's answer
   */
  ask(member: Member, request: Message, headers: ForwardedHeaders | undefined, awaited?: ListMethod | 'all'): Asked {
    const list = typeof awaited === 'object' ? awaited : undefined;
    const id = request.id as RequestId;
    let isLate = false;
    let settle: (response: Message | undefined) => void = () => undefined;
    const outcome = new Promise<Message | undefined>((resolve) => {
      settle = resolve;
    });
    const cancel = (why: string): void => {
      limit?.clear();
      if (member.drop(id)) member.send(cancelled(id, why), undefined);
      settle(undefined);
    };
    const handleTimeout = (): void => {
      const { parts, absences } = this.#view;
      if (list !== undefined && !member.declares(list.capability)) {
        member.noteLacking(list);
        return cancel('The server does not declare this list.');
      }
      parts.onUnavailable(member.name, 'silent');
      if (list !== undefined) absences.note(member.name, 'lists');
      isLate = list !== undefined && this.#late.lacks(member);
      if (!isLate) return cancel('The view does not wait for this server any longer.');
      this.#late.expect(member);
      settle(undefined);
    };
    const limit = awaited === 'all' ? undefined : new TimeLimit(handleTimeout, this.#view.parts.timeoutMs);
    const sent = member.send(request, headers, (response) => {
      limit?.clear();
      if (isLate) this.#late.settle(member, response);
      else settle(response);
    });
    if (sent !== 'sent') cancel('');
    return { outcome, cancel };
  }

  #pageRequest(request: Message, cursors: Cursors | undefined, member: Member): Message {
    const own = cursors?.get(member.name);
    const renamed = withId(request, nextOwnId());
    if (own === undefined) return renamed;
    return changedMessage(renamed, putMembers(renamed, 'params', [['cursor', JSON.stringify(own)]]), {});
  }

  #read(
    response: Message | undefined,
    list: ListMethod,
    member: Member,
    cursors: Cursors | undefined,
  ): MemberPage | undefined | Promise<MemberPage | undefined> {
    const { reading, parts } = this.#view;
    if (response === undefined) return member.mayHave(list) ? undefined : emptyPage;
    const note = (page: MemberPage | undefined): MemberPage | undefined => {
      if (response.isError && page !== undefined) member.noteLacking(list);
      if (page !== undefined && page.troubles.leftOut.length + page.troubles.refused.length > 0)
        parts.onNameTroubles(page.troubles);
      return page;
    };
    const page = readPage(response, list, member.index, reading, cursors?.get(member.name));
    return page instanceof Promise ? page.then(note) : note(page);
  }

  async #learnAll(headers: ForwardedHeaders | undefined): Promise<void> {
    const { members, reading } = this.#view;
    const ready = members.filter(({ isReady }) => isReady);
    const asked = ready.flatMap((member) =>
      resourceLists.filter((list) => member.mayHave(list)).map((list) => ({ member, list })),
    );
    const learned = ready.map(async (member) => {
      const lists = asked.filter((each) => each.member === member);
      await Promise.all(lists.map(({ list }) => this.#learn(member, list, headers)));
      reading.routes.noteRead(member.index);
      this.#view.noteLearned();
    });
    await Promise.all(learned);
    reading.routes.isWhole = true;
  }

  async #learn(member: Member, list: ListMethod, headers: ForwardedHeaders | undefined): Promise<void> {
    const request = createMessage({ id: 0, method: list.name, params: {} });
    await walkPages(async (cursor) => {
      const cursors: Cursors | undefined = cursor === undefined ? undefined : new Map([[member.name, cursor]]);
      const response = await this.ask(member, this.#pageRequest(request, cursors, member), headers, list).outcome;
      const page = await this.#read(response, list, member, cursors);
      this.#view.noteLearned();
      return { nextCursor: page?.nextCursor };
    });
  }
}

/** A server that answers its lists too late again and again is announced only so often, or its clients read in a loop. */
const announceMs = 30_000;

/**
 * The list requests that nobody waits for any more. Their answers show that a silent server is there again. Each server
 * has at most one such request (P8).
 */
class LateLists {
  readonly #view: View;
  readonly #waiting = new Set<Member>();
  readonly #announcedAtMs = new Map<Member, number>();

  constructor(view: View) {
    this.#view = view;
  }

  /** True if no answer of this server is awaited here. */
  lacks(member: Member): boolean {
    return !this.#waiting.has(member);
  }

  /** Asks a server for a list without waiting for it. */
  ask(member: Member, request: Message, headers: ForwardedHeaders | undefined): void {
    if (!this.lacks(member)) return;
    this.expect(member);
    const sent = member.send(request, headers, (response) => this.settle(member, response));
    if (sent !== 'sent') this.#waiting.delete(member);
  }

  /** The answer of a server is late. */
  expect(member: Member): void {
    this.#waiting.add(member);
  }

  /** The late answer of a server; undefined if the server was lost. */
  settle(member: Member, response: Message | undefined): void {
    this.#waiting.delete(member);
    if (response === undefined) return;
    this.#view.absences.forget(member.name, 'lists');
    const now = performance.now();
    if (now - (this.#announcedAtMs.get(member) ?? Number.NEGATIVE_INFINITY) < announceMs) return;
    this.#announcedAtMs.set(member, now);
    contain('backend', () => this.#view.announce(member));
  }
}
