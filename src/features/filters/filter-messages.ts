import type { BackendEnd, OpenOptions, RequestIds, Sent } from '../../core/backend/backend.ts';
import {
  type FilterOptions,
  FilterRules,
  foldedMethodOf,
  isUnfiltered,
  type PinnedTools,
} from '../../core/backend/filter-rules.ts';
import { OrderedDelivery } from '../../core/backend/in-order.ts';
import { type CreateInterceptor, Interceptor, type Outgoing } from '../../core/backend/link/link.ts';
import { isResponse, OwnRequests } from '../../core/backend/own-requests.ts';
import { WaitingRequests } from '../../core/backend/waiting-budget.ts';
import type { Reason, RequestId } from '../../core/protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../core/protocol/ids/own-ids.ts';
import { scalarAt, scanObject } from '../../core/protocol/json.ts';
import { changedMessage } from '../../core/protocol/message/changed-message.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import { type Message, memberRange, memberValue, readGatewayMessage } from '../../core/protocol/message/message.ts';
import { contain, detach } from '../../core/util/boundary.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';
import { editCall, type FilterOutcome } from './edit-tools.ts';
import { NameFilter, promptKind, toolKind } from './name-filter.ts';

/**
 * The interceptor by which the clients of a server see and call only what the options allow (docs/decisions/0102); none if
 * they allow everything. Filters are nearest to the server, so they bind every client, of every endpoint and of both eras.
 */
export function filtersOf(options: FilterOptions, pins?: PinnedTools): readonly CreateInterceptor[] {
  if (isUnfiltered(options)) return [];
  const tools = new FilterRules(options.allowTools, options.denyTools, options.tools, pins);
  const prompts = new FilterRules(options.allowPrompts, options.denyPrompts);
  return [(opening) => new Filter(opening, tools, prompts)];
}

/** A list request in flight, and the headers of its client. */
interface ListRequest {
  readonly filter: NameFilter;
  readonly headers: ForwardedHeaders;
  readonly isFirstPage: boolean;
}

/** Cancelled list requests that are remembered. An answer to an older one is recognised by its content (P8). */
const maxLists = 4_096;
/** Calls that wait for the list of their server; a client can send many at once (P8). */
const maxWaiting = 1_024;

/** A server that does not answer the gateway's list request must not keep a call waiting (P3). */
const listTimeoutMs = 30_000;

/** A message as clients get it; undefined if no client gets it. */
type Filtered = Message | undefined;

/** The filter of one backend. */
class Filter extends Interceptor {
  readonly #filters: readonly NameFilter[];
  /** The list requests of clients. */
  readonly #lists = new BoundedMap<RequestId, ListRequest>(maxLists);
  /** True if an answer may belong to a list request that is not in `#lists`. */
  #hasForgottenLists: boolean;
  /** The calls that wait for the list of their server. */
  readonly #waiting = new WaitingRequests<Outgoing>(maxWaiting);
  /** The list requests of the gateway itself. */
  readonly #ownLists = new OwnRequests();
  /** While a large list is filtered, the server is not read, so that only what was read already waits (P8). */
  readonly #inOrder = new OrderedDelivery('backend', {
    hold: () => this.hold(),
    release: () => this.release(),
  });

  constructor(options: OpenOptions | undefined, tools: FilterRules, prompts: FilterRules) {
    super();
    this.#filters = [new NameFilter(toolKind, tools), new NameFilter(promptKind, prompts)].filter(
      ({ rules }) => !rules.isEmpty,
    );
    // An earlier owner has sent the requests of a resumed session, whose methods are not known here.
    this.#hasForgottenLists = (options?.resume?.pending.length ?? 0) > 0;
  }

  override onSend(outgoing: Outgoing): Outgoing | Sent {
    const { message } = outgoing;
    const { cancels, method } = message;
    if (cancels !== undefined && this.#waiting.delete(cancels)) return 'sent';
    if (method === undefined || message.kind === 'response') return outgoing;
    const folded = foldedMethodOf(method);
    for (const filter of this.#filters) {
      if (folded.names === filter.kind.names) return this.#call(filter, outgoing);
      if (folded === filter.kind.list) return this.#list(filter, outgoing);
      if (folded.target === 'ref' && filter.kind === promptKind && hasPromptRef(message))
        return this.#call(filter, outgoing);
    }
    return outgoing;
  }

  /** A list request that the server did not get has no answer. */
  override onSent({ kind, id }: Message, result: Sent): void {
    if (result !== 'sent' && kind === 'request' && id != null) this.#lists.delete(id);
  }

  override onMessages(messages: readonly Message[], relatedRequests: RequestIds | undefined): readonly Message[] {
    const filter = (): readonly Filtered[] | Promise<readonly Filtered[]> => {
      const filtered = messages.map((message) => this.#filterMessage(message));
      return filtered.some((message) => message instanceof Promise)
        ? Promise.all(filtered)
        : (filtered as readonly Filtered[]);
    };
    this.#inOrder.takeLater(filter, (filtered) => {
      const passed = filtered.filter((message) => message !== undefined);
      if (passed.length > 0) this.passMessages(passed, relatedRequests);
    });
    return [];
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void {
    for (const id of ids) this.#lists.delete(id);
    const others = ids.filter((id) => !this.#ownLists.lose(id, reason));
    if (others.length > 0) this.#inOrder.after(() => this.passUnanswered(others, reason, isFinal));
  }

  override onState(state: string): void {
    this.#inOrder.after(() => this.passState(state));
  }

  override onEnd(end: BackendEnd): void {
    const waiting = [...this.#waiting.values()].map((each) => ({ ...each, headers: each.headers ?? noHeaders }));
    this.#waiting.clear();
    this.#ownLists.end(end);
    const undelivered = [...waiting, ...(end.undelivered ?? [])];
    this.#inOrder.after(() => this.passEnd(waiting.length === 0 ? end : { ...end, undelivered }));
  }

  #list(filter: NameFilter, outgoing: Outgoing): Outgoing | Sent {
    const { message, headers = noHeaders } = outgoing;
    if (message.kind !== 'request') return 'sent'; // a careless server could answer a notification
    const id = message.id as RequestId;
    if (this.#lists.makeRoomFor(id) !== undefined) this.#hasForgottenLists = true;
    const isFirstPage = memberRange(message, 'params', 'cursor') === undefined;
    this.#lists.set(id, { filter, headers, isFirstPage });
    return outgoing;
  }

  #call(filter: NameFilter, outgoing: Outgoing): Outgoing | Sent {
    const { message, headers } = outgoing;
    // A careless server could run the call of a notification, which has no answer.
    if (message.kind !== 'request') return 'sent';
    const own = ownNameIn(filter, message);
    const allowed = own === undefined ? false : filter.allows(own, headers ?? noHeaders);
    if (own !== undefined && allowed === true) return this.#edited(filter, own, outgoing);
    if (allowed === false) {
      this.#refuse(message, filter.reasonAgainst(own));
      return 'sent';
    }
    const id = message.id as RequestId;
    if (!this.#waiting.hasRoomFor(id, outgoing)) return 'full';
    this.#waiting.set(id, outgoing);
    const read = filter.read(headers ?? noHeaders, (cursor) => this.#readPage(filter, cursor, outgoing));
    detach(
      'backend',
      read.then((isRead) => {
        if (this.#waiting.get(id) !== outgoing) return; // cancelled, or the backend has ended
        this.#waiting.delete(id);
        contain('backend', () => this.#settle(filter, own as string, outgoing, isRead));
      }),
    );
    return 'sent';
  }

  /** Requests a page of a list; undefined if the server does not give it. */
  async #readPage(
    { kind }: NameFilter,
    cursor: string | undefined,
    { message, headers }: Outgoing,
  ): Promise<Buffer | undefined> {
    const request = ownListRequest(kind.list.name, cursor, message);
    const answer = await this.#ownLists.send(request, (own) => this.passSend(own, headers), listTimeoutMs);
    return isResponse(answer) && !answer.isError ? answer.text : undefined;
  }

  /** The list was read for a call that waits: passes the call on, or refuses it. */
  #settle(filter: NameFilter, own: string, outgoing: Outgoing, isRead: boolean): void {
    const { message, headers } = outgoing;
    const isAllowed = filter.allows(own, headers ?? noHeaders) === true;
    if (!isAllowed) return this.#refuse(message, isRead ? filter.reasonAgainst(own) : 'list_unreadable');
    const edited = this.#edited(filter, own, outgoing);
    if (edited !== 'sent' && this.passSend(edited.message, headers) === 'full')
      this.passUnanswered([message.id as RequestId], 'server_busy', true);
  }

  /** The call as the server gets it; `sent` if its arguments are refused. */
  #edited(filter: NameFilter, own: string, outgoing: Outgoing): Outgoing | 'sent' {
    if (filter.kind !== toolKind) return outgoing;
    const { message, headers } = outgoing;
    const edited = editCall(message, own, filter.rules.changesTo(own));
    if (edited !== 'bad_arguments') return { message: edited, headers };
    this.#refuse(message, edited);
    return 'sent';
  }

  /** Answers a request in place of the server, outside of the call that brought it. */
  #refuse({ id }: Message, reason: Reason): void {
    queueMicrotask(() => {
      contain('backend', () => this.passMessages([createFaultResponse(reason, id as RequestId)]));
    });
  }

  /** Returns the message as clients get it, perhaps later; undefined if it answers the gateway's own request. */
  #filterMessage(message: Message): Filtered | Promise<Message> {
    if (message.kind === 'notification') {
      for (const filter of this.#filters) if (message.method === filter.kind.list.list.changed) filter.forget();
      return message;
    }
    const { id } = message;
    if (message.kind !== 'response' || id == null) return message;
    if (this.#ownLists.answer(message)) return undefined;
    const request = this.#lists.get(id);
    this.#lists.delete(id);
    if (message.isError) return message;
    if (request !== undefined) return filterResponse(message, request);
    if (!this.#hasForgottenLists) return message;
    const unknown = { headers: noHeaders, isFirstPage: false };
    return this.#filters.reduce<Message | Promise<Message>>((filtered, filter) => {
      const request = { filter, ...unknown };
      return filtered instanceof Promise
        ? filtered.then((earlier) => filterResponse(earlier, request))
        : filterResponse(filtered, request);
    }, message);
  }
}

/** The response as clients get it. A list that cannot be read becomes an error. */
function filterResponse(message: Message, { filter, headers, isFirstPage }: ListRequest): Message | Promise<Message> {
  if (message.isError) return message;
  const passed = (filtered: FilterOutcome): Message => {
    if (filtered === 'absent' || filtered === 'empty') return message;
    if (filtered === 'unreadable') return createFaultResponse('list_unreadable', message.id as RequestId);
    return filtered.text === message.text ? message : changedMessage(message, filtered.text, {});
  };
  const filtered = filter.filter(message.text, headers, isFirstPage);
  return filtered instanceof Promise ? filtered.then(passed) : passed(filtered);
}

/** The server's name of what a request calls; undefined if clients know no such name. */
function ownNameIn({ rules }: NameFilter, message: Message): string | undefined {
  const path = ['params', ...(foldedMethodOf(message.method ?? '').target === 'ref' ? ['ref', 'name'] : ['name'])];
  const name = path.length === 2 ? memberValue(message, 'params', 'name') : scalarAt(message.text, path);
  return typeof name === 'string' ? rules.ownName(name) : undefined;
}

/** True for a completion of a prompt's argument, and for one that a careless server could read as that. */
function hasPromptRef(message: Message): boolean {
  if (memberRange(message, 'params', 'ref') === undefined) return false;
  return scalarAt(message.text, ['params', 'ref', 'type']) !== 'ref/resource';
}

/**
 * Creates a request for a page of a list, to check calls that come before any list.
 * @param call the call that needs the list. A modern request carries its protocol version and capabilities
 */
function ownListRequest(method: string, cursor: string | undefined, call: Message): Message {
  const meta = call.isModern ? [`"_meta":${envelopeOf(call)}`] : [];
  const params = [...(cursor === undefined ? [] : [`"cursor":${JSON.stringify(cursor)}`]), ...meta].join();
  const text = `{"jsonrpc":"2.0","id":${nextOwnId()},"method":"${method}","params":{${params}}}`;
  return readGatewayMessage(Buffer.from(text));
}

/** The members of a modern request's `_meta` that every request carries, as JSON text. */
function envelopeOf(call: Message): string {
  const range = memberRange(call, 'params', '_meta');
  const meta = range === undefined ? Buffer.from('{}') : call.text.subarray(range.start, range.end);
  const members = scanObject(meta);
  if (members === undefined || members === 'duplicate_key') return '{}';
  const texts = members.keys.flatMap((key, index) => {
    const value = meta.toString('utf8', members.starts[index], members.ends[index]);
    return key.startsWith('io.modelcontextprotocol/') ? [`${JSON.stringify(key)}:${value}`] : [];
  });
  return `{${texts.join()}}`;
}
