import type { Backend, BackendEnd, BackendEvents, OpenBackend } from '../../backend/backend.ts';
import { BackendDecorator } from '../../backend/backend-decorator.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { detach } from '../../util/boundary.ts';
import { type BackendOwner, backendOwnerKey } from './backend-owner.ts';
import type { MessageTap } from './message-tap.ts';

/** A backend that lives. */
export interface ObservedBackend extends BackendOwner {
  readonly pid: number | undefined;
  /** How many the owner has lost before. */
  readonly restarts: number;
  /** On the monotonic clock, in milliseconds. */
  readonly openedAt: number;
}

/** A backend that lives, and what is sent to it. */
class Live extends BackendDecorator implements ObservedBackend {
  readonly session: ObservedBackend['session'];
  readonly server: string;
  readonly restarts: number;
  readonly openedAt = performance.now();
  /** It is being ended for another one to take its place. */
  isRestarted = false;
  readonly #owned: Owned;
  readonly #flow: MessageTap;

  constructor(backend: Backend, owned: Owned, flow: MessageTap) {
    super(backend);
    this.session = owned.owner.session;
    this.server = owned.owner.server;
    this.restarts = owned.losses;
    this.#owned = owned;
    this.#flow = flow;
  }

  send(message: Uint8Array, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    this.#owned.messages += 1;
    if (this.#flow.isWatched) this.#flow.passed(this.#owned.owner, 'client', message);
    return this.backend.send(message, headers);
  }
}

/** The backends of one owner, which has one at a time, and sometimes the next while the last one still ends. */
interface Owned {
  readonly owner: BackendOwner;
  readonly live: Set<Live>;
  /** How many ended without having been let go of. */
  losses: number;
  /** Messages in both directions. */
  messages: number;
}

/** What is told of the end of one that is restarted: whoever has it is to take it for lost, and not for its own doing. */
const restarted = { reason: 'exited', detail: 'The server was restarted from the status page.' } as const;

/** The backends that live, by whose they are, and what passes them, for those who look. */
export class ObservedBackends {
  readonly #flow: MessageTap;
  readonly #byOwner = new Map<string, Owned>();

  constructor(flow: MessageTap) {
    this.#flow = flow;
  }

  /** Opens backends of this owner that are seen. */
  seen(owner: BackendOwner, open: OpenBackend): OpenBackend {
    return (events, options) => {
      const owned = this.#of(owner);
      const onEnd = (end: BackendEnd): void => {
        owned.live.delete(entry);
        const told = entry.isRestarted ? { ...end, ...restarted } : end;
        if (told.reason !== 'closed') owned.losses += 1;
        events.onEnd(told);
      };
      const backend = open(this.#watched(owned, { ...events, onEnd }), options);
      const entry = new Live(backend, owned, this.#flow);
      owned.live.add(entry);
      return entry;
    };
  }

  /** Nothing of a session is left. */
  forget(owner: BackendOwner): void {
    this.#byOwner.delete(backendOwnerKey(owner));
  }

  /** Those that live, of all owners. */
  *live(): Iterable<ObservedBackend> {
    for (const { live } of this.#byOwner.values()) yield* live;
  }

  /** What is known of an owner. */
  of(owner: BackendOwner): { readonly messages: number; readonly restarts: number } | undefined {
    const owned = this.#byOwner.get(backendOwnerKey(owner));
    return owned && { messages: owned.messages, restarts: owned.losses };
  }

  /**
   * Ends all living backends of a server: whoever has one starts the next, as after any loss.
   * @returns how many there were
   */
  restart(server: string): number {
    const live = [...this.#byOwner.values()]
      .filter(({ owner }) => owner.server === server)
      .flatMap((owned) => [...owned.live]);
    for (const entry of live) {
      entry.isRestarted = true;
      detach('admin', entry.close());
    }
    return live.length;
  }

  #watched(owned: Owned, events: BackendEvents): BackendEvents {
    return {
      onMessages: (messages, of) => {
        owned.messages += messages.length;
        if (this.#flow.isWatched) for (const message of messages) this.#flow.passed(owned.owner, 'server', message);
        events.onMessages(messages, of);
      },
      onUnanswered: (ids, reason, isFinal) => events.onUnanswered(ids, reason, isFinal),
      onState: (state) => events.onState?.(state),
      onEnd: (end) => events.onEnd(end),
    };
  }

  #of(owner: BackendOwner): Owned {
    const key = backendOwnerKey(owner);
    const known = this.#byOwner.get(key);
    if (known !== undefined) return known;
    const created: Owned = { owner, live: new Set(), losses: 0, messages: 0 };
    this.#byOwner.set(key, created);
    return created;
  }
}
