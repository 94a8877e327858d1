import type { BackendOwner, LiveBackend, LiveBackends } from '@mcp-gangway/console';
import type { BackendEnd } from '../../core/backend/backend.ts';
import { type CreateInterceptor, Interceptor, type Outgoing } from '../../core/backend/link/link.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { detach } from '../../core/util/boundary.ts';
import type { MessageTap } from './message-tap.ts';

/** A restart is reported as `exited`, so that the owner restores the backend instead of treating it as closed. */
const restartEnd = { reason: 'exited', detail: 'The server was restarted from the status page.' } as const;

/** A live backend that reports its messages to the tap. */
class ObservedBackend extends Interceptor implements LiveBackend {
  readonly session: LiveBackend['session'];
  readonly server: string;
  readonly restarts: number;
  readonly openedAt = performance.now();
  /** True if the operator is restarting the backend. */
  isRestarted = false;
  readonly #owned: OwnedBackends;
  readonly #tap: MessageTap;

  constructor(owned: OwnedBackends, tap: MessageTap) {
    super();
    this.session = owned.owner.session;
    this.server = owned.owner.server;
    this.restarts = owned.losses;
    this.#owned = owned;
    this.#tap = tap;
    owned.live.add(this);
  }

  override onSend(outgoing: Outgoing): Outgoing {
    const { message } = outgoing;
    this.#owned.messages += 1;
    // A server's row counts no handshake either.
    if (message.kind === 'request' && message.method !== 'initialize') this.#owned.calls += 1;
    if (this.#tap.isWatched) this.#tap.passed(this.#owned.owner, 'client', message);
    return outgoing;
  }

  override onMessages(messages: readonly Message[]): readonly Message[] {
    const { owner } = this.#owned;
    this.#owned.messages += messages.length;
    if (this.#tap.isWatched) for (const message of messages) this.#tap.passed(owner, 'server', message);
    return messages;
  }

  override onNoise(text: Buffer, more = 0): void {
    this.#owned.messages += 1 + more;
    if (this.#tap.isWatched) this.#tap.passedNoise(this.#owned.owner, text);
    this.passNoise(text, more);
  }

  override onEnd(end: BackendEnd): void {
    this.passEnd(this.isRestarted ? { ...end, ...restartEnd } : end);
  }

  override onOver({ reason }: BackendEnd): void {
    this.#owned.live.delete(this);
    if (reason !== 'closed') this.#owned.losses += 1;
  }
}

/** The backends of one owner. Usually there is one; a replacement can start while the previous one still ends. */
interface OwnedBackends {
  readonly owner: BackendOwner;
  readonly live: Set<ObservedBackend>;
  /** The number of backends that ended without a `close` by their owner. */
  losses: number;
  /** Messages in both directions. */
  messages: number;
  /** Requests to the server. */
  calls: number;
}

/** Observes the live backends by owner, and passes their messages to the tap. */
export class ObservedBackends implements LiveBackends {
  readonly #tap: MessageTap;
  /** By the short name of the session, which is empty for the clients that share a backend. Few sessions have two. */
  readonly #bySession = new Map<string, OwnedBackends[]>();

  constructor(tap: MessageTap) {
    this.#tap = tap;
  }

  /**
   * The interceptor that observes the backends of a server. The owner of a backend is the session that opens it, or all
   * clients of the server.
   */
  observe(server: string): CreateInterceptor {
    return (options) => new ObservedBackend(this.#findOrCreate({ server, session: options?.session }), this.#tap);
  }

  /** Forgets a session that has ended. A session of a view owns backends of several servers. */
  forget(session: string): void {
    this.#bySession.delete(session);
  }

  /** The live backends of all owners. */
  *live(): Iterable<LiveBackend> {
    for (const { live } of this.#owned()) yield* live;
  }

  /** Returns the counts of an owner: messages, requests to the server, and restarts. */
  countsOf(
    owner: BackendOwner,
  ): { readonly messages: number; readonly calls: number; readonly restarts: number } | undefined {
    const owned = this.#find(owner);
    return owned && { messages: owned.messages, calls: owned.calls, restarts: owned.losses };
  }

  /**
   * Ends all live backends of a server. Their owners restore them, as after any loss.
   * @returns the number of ended backends
   */
  restart(server: string): number {
    const live = [...this.#owned()].filter(({ owner }) => owner.server === server).flatMap((owned) => [...owned.live]);
    for (const entry of live) {
      entry.isRestarted = true;
      detach('admin', entry.close());
    }
    return live.length;
  }

  *#owned(): Iterable<OwnedBackends> {
    for (const owned of this.#bySession.values()) yield* owned;
  }

  #find({ server, session = '' }: BackendOwner): OwnedBackends | undefined {
    return this.#bySession.get(session)?.find(({ owner }) => owner.server === server);
  }

  #findOrCreate(owner: BackendOwner): OwnedBackends {
    const known = this.#find(owner);
    if (known !== undefined) return known;
    const { session = '' } = owner;
    const created: OwnedBackends = { owner, live: new Set(), losses: 0, messages: 0, calls: 0 };
    this.#bySession.set(session, [...(this.#bySession.get(session) ?? []), created]);
    return created;
  }
}
