import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { scalarAt } from '../../protocol/json/splice.ts';
import { detachedMessage, type Message, withId } from '../../protocol/message/message.ts';
import { contain, detach } from '../../util/boundary.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import type { Backend } from '../backend.ts';
import type { FanOut } from './fan-out.ts';
import type { Member } from './member.ts';
import type { UriRoutes } from './uri-routes.ts';

/** What the requests for resources need of their view. */
export interface ResourceRequestsOptions {
  readonly members: readonly Member[];
  readonly routes: UriRoutes;
  readonly fanOut: FanOut;
  /** Passes a request to a server, or answers it if the server is not there. */
  pass(
    member: Member | undefined,
    message: Message,
    headers: ForwardedHeaders | undefined,
  ): ReturnType<Backend['send']>;
  /** As `pass`, later than the client has sent the request. */
  passLater(member: Member | undefined, message: Message, headers: ForwardedHeaders | undefined): void;
  /** Answers a request in place of the servers. */
  answer(response: Message): void;
  refuse(message: Message): void;
}

/** How many resource subscriptions are repeated at a server that starts again (P8). */
const maxSubscriptions = 1_000;

/** A subscription, and the position of its server in the view. */
interface Subscription {
  readonly index: number;
  readonly request: Message;
}

/** A request whose URI has no known server yet. */
interface UnroutedRequest {
  readonly uri: string;
  readonly message: Message;
  readonly headers: ForwardedHeaders | undefined;
}

/** Passes the requests that name a resource to the server that has it. */
export class ResourceRequests {
  readonly #options: ResourceRequestsOptions;
  readonly #unrouted = new Map<RequestId, UnroutedRequest>();
  readonly #subscriptions = new BoundedMap<string, Subscription>(maxSubscriptions);

  constructor(options: ResourceRequestsOptions) {
    this.#options = options;
  }

  /**
   * Passes a request on. If no list has named its resource, the lists of all servers are read first.
   * @param path the keys that lead to the URI
   */
  send(message: Message, path: readonly string[], headers: ForwardedHeaders | undefined): ReturnType<Backend['send']> {
    const { routes, fanOut, refuse } = this.#options;
    const uri = scalarAt(message.text, path);
    if (typeof uri !== 'string') {
      refuse(message);
      return 'sent';
    }
    const having = this.#having;
    const index = having.length === 1 ? having[0]?.index : routes.findUri(uri);
    if (index !== undefined) {
      const member = this.#noteSubscription(index, uri, message);
      return this.#options.pass(member, message, headers);
    }
    if (routes.isWhole) {
      this.#passUnknown(message, headers);
      return 'sent';
    }
    const id = message.id as RequestId;
    this.#unrouted.set(id, { uri, message, headers });
    const learned = fanOut.learnUris(headers).then(() =>
      contain('backend', () => {
        if (this.#unrouted.delete(id)) this.#passUnknown(message, headers);
      }),
    );
    detach('backend', learned);
    return 'sent';
  }

  /** Passes on the requests that wait for URIs which are known now: a silent server does not hold them. */
  passKnown(): void {
    for (const [id, { uri, message, headers }] of this.#unrouted) {
      const index = this.#options.routes.findUri(uri);
      if (index === undefined) continue;
      this.#unrouted.delete(id);
      this.#options.passLater(this.#noteSubscription(index, uri, message), message, headers);
    }
  }

  /** Removes a request that its client has cancelled. False if no such request waits here. */
  cancel(id: RequestId): boolean {
    return this.#unrouted.delete(id);
  }

  /** The subscriptions that a server had. */
  subscriptionsAt(index: number): readonly Message[] {
    return [...this.#subscriptions.values()].filter((each) => each.index === index).map(({ request }) => request);
  }

  get #having(): readonly Member[] {
    return this.#options.members.filter((member) => member.declares('resources'));
  }

  #noteSubscription(index: number, uri: string, message: Message): Member | undefined {
    if (message.method === 'resources/subscribe')
      this.#subscriptions.set(uri, { index, request: detachedMessage(message) });
    if (message.method === 'resources/unsubscribe') this.#subscriptions.delete(uri);
    return this.#options.members.find((member) => member.index === index);
  }

  #passUnknown(message: Message, headers: ForwardedHeaders | undefined): void {
    if (message.method !== 'resources/read') return this.#options.refuse(message);
    const ready = this.#having.filter(({ isReady }) => isReady);
    this.#try(message, ready, headers);
  }

  /** Reads a resource that no list names: a tool may have returned its URI. The servers are asked one after another. */
  #try(message: Message, [member, ...others]: readonly Member[], headers: ForwardedHeaders | undefined): void {
    const { fanOut, refuse, passLater, answer } = this.#options;
    if (member === undefined) return refuse(message);
    if (others.length === 0) return passLater(member, message, headers);
    const { outcome } = fanOut.ask(member, withId(message, fanOut.newId()), headers);
    const tried = outcome.then((response) => {
      if (response === undefined || response.isError) return this.#try(message, others, headers);
      answer(withId(response, message.id as RequestId));
    });
    detach('backend', tried);
  }
}
