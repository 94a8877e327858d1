import type { Backend, BackendEvents, OpenBackend } from '../../backend/backend.ts';
import { type BackendOwner, keyOf } from './backend-owner.ts';
import type { Flow } from './flow.ts';

/** A backend that lives. */
export interface SeenBackend extends BackendOwner {
  readonly pid: number | undefined;
  /** How many the owner had before. */
  readonly restarts: number;
  /** On the monotonic clock, in milliseconds. */
  readonly openedAt: number;
}

/** The backends of one owner, which has one at a time, and sometimes the next while the last one still ends. */
interface Owned {
  readonly owner: BackendOwner;
  readonly live: Set<SeenBackend & { readonly backend: Backend }>;
  opened: number;
  /** Messages in both directions. */
  messages: number;
}

/** The backends that live, by whose they are, and what passes them, for those who look. */
export class SeenBackends {
  readonly #flow: Flow;
  readonly #byOwner = new Map<string, Owned>();

  constructor(flow: Flow) {
    this.#flow = flow;
  }

  /** Opens backends of this owner that are seen. */
  seen(owner: BackendOwner, open: OpenBackend): OpenBackend {
    return (events, options) => {
      const owned = this.#of(owner);
      const backend = open(
        this.#watched(owned, events, () => owned.live.delete(entry)),
        options,
      );
      const entry = {
        ...owner,
        backend,
        restarts: owned.opened,
        openedAt: performance.now(),
        get pid() {
          return backend.pid;
        },
      };
      owned.opened += 1;
      owned.live.add(entry);
      return {
        get pid() {
          return backend.pid;
        },
        send: (message, headers) => {
          owned.messages += 1;
          if (this.#flow.isWatched) this.#flow.passed(owner, 'client', message);
          return backend.send(message, headers);
        },
        pause: () => backend.pause(),
        resume: () => backend.resume(),
        close: (how) => backend.close(how),
      };
    };
  }

  /** Nothing of a session is left. */
  forget(owner: BackendOwner): void {
    this.#byOwner.delete(keyOf(owner));
  }

  /** Those that live, of all owners. */
  *live(): Iterable<SeenBackend> {
    for (const { live } of this.#byOwner.values()) yield* live;
  }

  /** What is known of an owner. */
  of(owner: BackendOwner): { readonly messages: number; readonly restarts: number } | undefined {
    const owned = this.#byOwner.get(keyOf(owner));
    return owned && { messages: owned.messages, restarts: Math.max(0, owned.opened - 1) };
  }

  /**
   * Ends all living backends of a server: whoever has one starts the next, as after any loss.
   * @returns how many there were
   */
  restart(server: string): number {
    const live = [...this.#byOwner.values()]
      .filter(({ owner }) => owner.server === server)
      .flatMap((owned) => [...owned.live]);
    for (const { backend } of live) void backend.close();
    return live.length;
  }

  #watched(owned: Owned, events: BackendEvents, onEnd: () => void): BackendEvents {
    return {
      onMessages: (messages, of) => {
        owned.messages += messages.length;
        if (this.#flow.isWatched) for (const message of messages) this.#flow.passed(owned.owner, 'server', message);
        events.onMessages(messages, of);
      },
      onUnanswered: (ids, reason) => events.onUnanswered(ids, reason),
      onState: (state) => events.onState?.(state),
      onEnd: (end) => {
        onEnd();
        events.onEnd(end);
      },
    };
  }

  #of(owner: BackendOwner): Owned {
    const key = keyOf(owner);
    const known = this.#byOwner.get(key);
    if (known !== undefined) return known;
    const created: Owned = { owner, live: new Set(), opened: 0, messages: 0 };
    this.#byOwner.set(key, created);
    return created;
  }
}
