import type { ModernAnswer } from '../../../call/modern-answer.ts';
import type { Reason } from '../../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../../protocol/http/forwarded-headers.ts';
import { type Message, memberRange, readGatewayMessage } from '../../../protocol/message/message.ts';
import { changesMatching } from '../../../protocol/modern/missed-changes.ts';
import { listenResult } from '../../../protocol/modern/renumber.ts';
import {
  acknowledgementOf,
  agreedFilter,
  readFilter,
  type SubscriptionFilter,
} from '../../../protocol/modern/subscription-filter.ts';
import { renewLeasesMs } from '../../../session/group/subscription-leases.ts';
import type { GroupRequestOptions, SessionHandle } from '../../../session/session-handle.ts';
import type { Changes } from '../../../store/shared/changes.ts';
import { StoreUnavailable } from '../../../store/store-unavailable.ts';
import { detach } from '../../../util/boundary.ts';
import { SessionReply } from '../session-reply.ts';

/** The session of a group, as a listener needs it. */
export interface SubscriptionSlot {
  /** The session, opened if need be, or why there is none. */
  open(
    forwarded?: ForwardedHeaders,
  ): Promise<{ readonly handle: SessionHandle; readonly opened: { readonly capabilitiesText: string } } | Reason>;
  /** The session as it is, or why there is none. */
  find(forwarded?: ForwardedHeaders): Promise<SessionHandle | Reason>;
  /** The session is not there any more. */
  forget(): void;
}

/** What a listener needs. */
export interface GroupSubscriptionOptions {
  readonly request: Message;
  readonly answer: ModernAnswer;
  readonly place: SubscriptionSlot;
  readonly forwarded: ForwardedHeaders | undefined;
  readonly changes: Changes;
  /** Under which the changes of its server are told, for its principal. */
  readonly topic: string;
  /** A name that no other listener of any instance has. */
  readonly name: string;
  /** The subscription is over. */
  onOver(): void;
}

/**
 * One `subscriptions/listen` of a modern client at a legacy server (2026-07-28, basic/patterns/subscriptions). It hears what
 * any session of its server and principal says, on any instance, and has one session of its group subscribe to the resources
 * that it asks for. The first message is what the server can tell of; a session that is lost is opened again, and all that
 * was subscribed to is then told as changed, since it may have.
 */
export class GroupSubscription {
  readonly #options: GroupSubscriptionOptions;
  readonly #idText: string;
  #filter: SubscriptionFilter = {};
  #unfollow: () => void = () => undefined;
  /** What came before the acknowledgement; undefined after it. */
  #early: (Message | undefined)[] | undefined = [];
  #timer: NodeJS.Timeout | undefined;
  #lastId = 0;
  #isOver = false;

  constructor(options: GroupSubscriptionOptions) {
    this.#options = options;
    const { start, end } = memberRange(options.request, 'message', 'id') as { start: number; end: number };
    this.#idText = options.request.text.toString('utf8', start, end);
    options.answer.onGone(() => this.#end());
  }

  /** Begins to listen, or answers why not. */
  async start(): Promise<void> {
    const { changes, topic, answer } = this.#options;
    try {
      // Followed first: nothing is missed between the subscription and this.
      const unfollow = await changes.subscribe(topic, {
        onChange: (text) => this.#hear(text.length === 0 ? undefined : readGatewayMessage(text)),
        onMissed: () => this.#hear(undefined),
      });
      if (this.#isOver) return unfollow();
      this.#unfollow = unfollow;
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) throw cause;
      return this.#fail('store_unavailable');
    }
    const failed = await this.#subscribe();
    if (this.#isOver) return this.#release();
    if (failed !== undefined) return this.#fail(failed);
    answer.message(acknowledgementOf(this.#filter, this.#idText));
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const change of early) this.#hear(change);
    this.#renewSoon();
  }

  /** Ends the subscription in order ("Graceful Closure"). */
  close(): void {
    if (this.#isOver) return;
    const isAcknowledged = this.#early === undefined;
    this.#end();
    if (isAcknowledged) this.#options.answer.response(listenResult(this.#idText), 200);
    else this.#options.answer.fault('draining');
  }

  /** A change; undefined if anything may have changed. */
  #hear(change: Message | undefined): void {
    if (this.#early !== undefined) {
      // There is no need for more than one of each; those that are many become one.
      if (this.#early.length < maxEarly) this.#early.push(change);
      else this.#early = [undefined];
      return;
    }
    for (const text of changesMatching(change, this.#filter, this.#idText)) this.#options.answer.message(text);
  }

  /** Has the session tell of what the client asks for, as far as it can. Returns why not, if there is no session. */
  async #subscribe(): Promise<Reason | undefined> {
    const { request, place, forwarded } = this.#options;
    let open = await place.open(forwarded);
    if (open === 'unknown_session') {
      place.forget();
      open = await place.open(forwarded);
    }
    if (typeof open === 'string') return open;
    const { handle, opened } = open;
    const agreed = agreedFilter(readFilter(request), opened.capabilitiesText);
    const asked = agreed.resourceSubscriptions ?? [];
    const outcomes = await Promise.all(
      asked.map((uri) => this.#ask(handle, 'resources/subscribe', { uri }, { holder: this.#options.name })),
    );
    const uris = asked.filter((_, index) => outcomes[index] === undefined);
    const { resourceSubscriptions: _, ...lists } = agreed;
    this.#filter = { ...lists, ...(uris.length > 0 && { resourceSubscriptions: uris }) };
    return undefined;
  }

  #renewSoon(): void {
    this.#timer = setTimeout(
      () => detach('session', this.#renew(), () => this.#fail('internal')),
      renewLeasesMs,
    ).unref();
  }

  /** Says that somebody listens; finds out that the session is lost. */
  async #renew(): Promise<void> {
    const { place, forwarded, name } = this.#options;
    const open = await place.open(forwarded);
    const { resourceSubscriptions: renews = [] } = this.#filter;
    const why = typeof open === 'string' ? open : await this.#ask(open.handle, 'ping', {}, { holder: name, renews });
    if (this.#isOver) return;
    if (why === 'unknown_session') {
      place.forget();
      // Without a session there is nobody to hear of; it is looked for again with the next renewal.
      if ((await this.#subscribe()) === undefined) this.#hear(undefined);
      if (this.#isOver) return this.#release();
    }
    this.#renewSoon();
  }

  /** Asks the session. Resolves with why it did not do what it was asked. */
  #ask(
    handle: SessionHandle,
    method: string,
    params: object,
    held: Pick<GroupRequestOptions, 'holder' | 'renews'>,
  ): Promise<Reason | 'refused' | undefined> {
    const { name, forwarded } = this.#options;
    const id = `${name} ${++this.#lastId}`;
    const message = readGatewayMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params })));
    return new Promise((resolve) => {
      const reply = new SessionReply(
        {
          message({ kind, memberRanges: places }) {
            if (kind === 'response') resolve(places.message?.keys.includes('error') ? 'refused' : undefined);
          },
          fault: resolve,
          ended: () => resolve('outcome_unknown'),
        },
        forwarded,
      );
      handle.post({ messages: [message], isBatch: false, group: { turnMs: 0, ...held } }, reply);
    });
  }

  #fail(reason: Reason): void {
    if (this.#isOver) return;
    this.#end();
    this.#options.answer.fault(reason);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#unfollow();
    detach(
      'session',
      this.#release().then(() => this.#options.onOver()),
    );
  }

  /** The session need not tell of the resources any more, for all that this listener cares. */
  async #release(): Promise<void> {
    const { place, forwarded, name } = this.#options;
    const { resourceSubscriptions: uris = [] } = this.#filter;
    this.#filter = {};
    if (uris.length === 0) return;
    const handle = await place.find(forwarded);
    if (typeof handle === 'string') return;
    await Promise.all(uris.map((uri) => this.#ask(handle, 'resources/unsubscribe', { uri }, { holder: name })));
  }
}

/** So many changes are kept until a subscription begins; if there are more, anything may have changed (P8). */
const maxEarly = 100;
