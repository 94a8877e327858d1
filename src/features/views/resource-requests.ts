import type { Sent } from '../../core/backend/backend.ts';
import { WaitingRequests } from '../../core/backend/waiting-budget.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../core/protocol/ids/own-ids.ts';
import { errorCodeIn, scalarAt } from '../../core/protocol/json.ts';
import { keptUris, maxSubscriptions, refusalOfSubscription } from '../../core/protocol/kept-uris.ts';
import { withId } from '../../core/protocol/message/changed-message.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import { createMessage, type Message } from '../../core/protocol/message/message.ts';
import { methodOf } from '../../core/protocol/methods/methods.ts';
import { methodNotFound, resourceNotFound } from '../../core/protocol/revisions.ts';
import { contain, detach } from '../../core/util/boundary.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';
import type { FanOut } from './fan-out.ts';
import type { Member } from './member.ts';
import type { View } from './view.ts';
import { resourceLists } from './view-lists.ts';

/** How many requests wait until the lists of all servers are read (P8). Their bytes have a limit, too. */
const maxUnrouted = 1_024;

/** A request whose URI has no known server yet. */
interface UnroutedRequest {
  readonly uri: string;
  readonly message: Message;
  readonly headers: ForwardedHeaders | undefined;
}

/** Passes the requests that name a resource to the server that has it. */
export class ResourceRequests {
  readonly #view: View;
  readonly #fanOut: FanOut;
  readonly #unrouted = new WaitingRequests<UnroutedRequest>(maxUnrouted);
  /** Cancels the reads for which one server after another is asked. */
  readonly #trying = new Map<RequestId, () => void>();
  /** The position of the server of each resource that the client has subscribed to. */
  readonly #subscriptions = new BoundedMap<string, number>(maxSubscriptions, keptUris);

  constructor(view: View, fanOut: FanOut) {
    this.#view = view;
    this.#fanOut = fanOut;
  }

  /**
   * Passes a request on. If no list has named its resource, the lists of all servers are read first.
   * @param path the keys that lead to the URI
   */
  send(message: Message, path: readonly string[], headers: ForwardedHeaders | undefined): Sent {
    const { routes } = this.#view.reading;
    const uri = scalarAt(message.text, path);
    if (typeof uri !== 'string') {
      this.#refuse(message);
      return 'sent';
    }
    const refusal = message.method === 'resources/subscribe' && refusalOfSubscription(this.#subscriptions, uri);
    if (refusal) {
      this.#view.answer(createFaultResponse(refusal, message.id as RequestId));
      return 'sent';
    }
    if (routes.isNobodys(uri)) {
      this.#refuse(message);
      return 'sent';
    }
    const having = this.#having(message);
    const index = having.length === 1 ? having[0]?.index : this.#find(uri, message);
    if (index !== undefined) {
      this.#noteSubscription(index, uri, message);
      return this.#view.pass(index, message, headers);
    }
    if (routes.isWhole) {
      this.#passUnknown(message, headers);
      return 'sent';
    }
    const id = message.id as RequestId;
    const unrouted = { uri, message, headers };
    if (!this.#unrouted.hasRoomFor(id, unrouted)) return 'full';
    this.#unrouted.set(id, unrouted);
    const learned = this.#fanOut.learnUris(headers).then(() =>
      contain('backend', () => {
        this.passKnown();
        if (this.#unrouted.delete(id)) this.#passUnknown(message, headers);
      }),
    );
    detach('backend', learned);
    return 'sent';
  }

  /** The server of a URI; undefined if it is unknown, or while a server before it may have a template for the URI. */
  #find(uri: string, { method }: Message): number | undefined {
    const { reading, members } = this.#view;
    const { routes } = reading;
    const isOfExtension = methodOf(method).extension !== undefined;
    if (routes.isWhole) return routes.findUri(uri, isOfExtension);
    const ready = members.filter(({ isReady }) => isReady).map(({ index }) => index);
    return routes.findSettled(uri, ready, isOfExtension);
  }

  /** Passes on the requests that wait for URIs which are known now: a silent server does not hold listed ones. */
  passKnown(): void {
    for (const [id, { uri, message, headers }] of this.#unrouted) {
      const index = this.#find(uri, message);
      if (index === undefined) continue;
      this.#unrouted.delete(id);
      this.#noteSubscription(index, uri, message);
      this.#view.passLater(index, message, headers);
    }
  }

  /** Removes a request that its client has cancelled. False if no such request waits here. */
  cancel(id: RequestId): boolean {
    const cancel = this.#trying.get(id);
    this.#trying.delete(id);
    cancel?.();
    return this.#unrouted.delete(id) || cancel !== undefined;
  }

  /** The subscriptions that a server had. */
  subscriptionsAt(index: number): readonly Message[] {
    return [...this.#subscriptions].flatMap(([uri, owner]) =>
      owner === index ? [createMessage({ id: 0, method: 'resources/subscribe', params: { uri } })] : [],
    );
  }

  /** The servers that may have what a request names. */
  #having({ method }: Message): readonly Member[] {
    const { members } = this.#view;
    const { extension, capability = '' } = methodOf(method);
    if (extension !== undefined) return members.filter((member) => member.declares(capability));
    return members.filter((member) => resourceLists.some((list) => member.mayHave(list)));
  }

  #noteSubscription(index: number, uri: string, { method }: Message): void {
    if (method === 'resources/subscribe') this.#subscriptions.set(uri, index);
    if (method === 'resources/unsubscribe') this.#subscriptions.delete(uri);
  }

  #passUnknown(message: Message, headers: ForwardedHeaders | undefined): void {
    const { effect, target } = methodOf(message.method);
    const mayBeUnlisted = effect === 'reads' && target === 'uri';
    if (!mayBeUnlisted) return this.#refuse(message);
    const ready = this.#having(message).filter(({ isReady }) => isReady);
    this.#try(message, ready, headers);
  }

  /**
   * Reads a resource that no list names: a tool may have returned its URI. The next server is asked only when one says
   * that it does not have the resource. A read may take long, so the client alone decides how long it waits.
   */
  #try(message: Message, [member, ...others]: readonly Member[], headers: ForwardedHeaders | undefined): void {
    if (member === undefined) return this.#refuse(message);
    const id = message.id as RequestId;
    const { outcome, cancel } = this.#fanOut.ask(member, withId(message, nextOwnId()), headers, 'all');
    const cancelTry = (): void => cancel('The client has cancelled the request.');
    this.#trying.set(id, cancelTry);
    const tried = outcome.then((response) => {
      if (this.#trying.get(id) !== cancelTry) return; // cancelled
      this.#trying.delete(id);
      if (response === undefined) return this.#view.answer(createFaultResponse('view_unavailable', id));
      if (others.length > 0 && saysNotFound(response)) return this.#try(message, others, headers);
      const uri = scalarAt(message.text, ['params', 'uri']);
      if (!response.isError && typeof uri === 'string') this.#view.reading.routes.noteReader(uri, member.index);
      this.#view.answer(withId(response, id));
    });
    detach('backend', tried);
  }

  #refuse(message: Message): void {
    this.#view.refuse(message, 'bad_uri');
  }
}

/** The codes with which servers refuse a URI that they do not have. SDKs of Python use 0 for every failure of a read. */
const notFoundCodes: ReadonlySet<number | undefined> = new Set([resourceNotFound, methodNotFound, -32602, 0]);
/** What messages of other errors say about such a URI. */
const notFoundWords = /not found|not exist|no such|unknown|unsupported|not supported|invalid ur[il]|no resource/i;

/** True for an error that says that the server does not have a resource. Another error is the answer to the read. */
function saysNotFound({ isError, text }: Message): boolean {
  if (!isError) return false;
  const message = scalarAt(text, ['error', 'message']);
  return notFoundCodes.has(errorCodeIn(text)) || (typeof message === 'string' && notFoundWords.test(message));
}
