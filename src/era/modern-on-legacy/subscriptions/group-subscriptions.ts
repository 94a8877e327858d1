import type { Answer } from '../../../call/answer.ts';
import type { ForwardedHeaders } from '../../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../../protocol/message/message.ts';
import type { Changes } from '../../../store/shared/changes.ts';
import { GroupSubscription, type SubscribedSession } from './group-subscription.ts';

/** A client's `subscriptions/listen` and its surroundings. */
export interface GroupSubscriptionRequest {
  readonly request: Message;
  readonly answer: Answer;
  /** The session that subscribes to the resources. */
  readonly session: SubscribedSession;
  /** The topic under which the clients of the group get changes. */
  readonly topic: string;
  readonly forwarded: ForwardedHeaders | undefined;
  /** A name that no other subscription of any instance has. */
  readonly name: string;
  onOver(): void;
}

/** The subscriptions of modern clients at a legacy server, on this instance. */
export class GroupSubscriptions {
  readonly #changes: Changes;
  readonly #max: number;
  readonly #open = new Set<GroupSubscription>();
  #isClosed = false;

  /** @param max the most subscriptions at once (P8) */
  constructor(changes: Changes, max: number) {
    this.#changes = changes;
    this.#max = max;
  }

  /** Serves a `subscriptions/listen`. Rejects for a fault of the gateway. */
  async listen({ onOver, ...options }: GroupSubscriptionRequest): Promise<void> {
    const { answer } = options;
    if (this.#isClosed) return answer.fault('draining');
    if (this.#open.size >= this.#max) return answer.fault('server_full');
    const subscription = new GroupSubscription({
      ...options,
      changes: this.#changes,
      onOver: () => {
        this.#open.delete(subscription);
        onOver();
      },
    });
    this.#open.add(subscription);
    await subscription.start();
  }

  /** Ends all subscriptions in order (P9), and refuses further ones. */
  close(): void {
    this.#isClosed = true;
    for (const subscription of [...this.#open]) subscription.close();
  }
}
