import type { Reason } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';
import type { Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import type { SessionLookup } from '../session/lookup.ts';
import type { Adoption } from '../session/record/adoption.ts';
import type { Session } from '../session/session.ts';
import type { SessionTelemetry } from '../session/session-events.ts';
import type { ClientPost, SessionHandle } from '../session/session-handle.ts';
import type { Registrant } from '../store/session-records.ts';

/**
 * The instances that share the store of a registry, as one of them sees them. The core knows only this seam; without
 * other instances there is none.
 */
export interface SessionCluster {
  /** The name and term of this instance, and how sure it can be that no other has declared it dead. */
  readonly lease: Registrant & {
    readonly name: string;
    readonly isHeld: boolean;
    readonly unconfirmedMs: number;
    /** Resolves to true when this instance may open sessions, or to false if it may not in time. */
    isReady(): Promise<boolean>;
  };
  /** The other instances, by whether they answer; undefined if there can be none. */
  readonly peers: PeerStates | undefined;
  /** Lets requests reach the sessions of this instance only while it owns them. */
  readonly guard: {
    handleOf(session: Session): SessionHandle;
    covers(session: Session): boolean;
    /** Registers a session that was opened in this term. */
    opened(session: Session, term: number): Promise<void>;
    release(): void;
  };
  /** Finds owners and homes, and takes over the sessions of lost instances. */
  readonly directory: {
    /** Whether the session exists and the client may use it. */
    admits(lookup: SessionLookup): Promise<'yes' | { readonly fault: Reason } | 'later'>;
    /** Resolves when no takeover is under way. */
    settled(): Promise<void>;
    isAlive(instance: string): Promise<boolean>;
    /** One of the other instances, which can take sessions over; undefined if there is none. */
    findSuccessor(): Promise<string | undefined>;
  };
  /** The instances to which clients come back. */
  readonly homes: {
    /** The other instance that is the home. Rejects with `StoreUnavailable` if that cannot be known. */
    find(home: readonly string[]): Promise<string | undefined>;
    /** This instance is the home from now on. An unavailable store delays nobody. */
    claim(home: readonly string[]): Promise<boolean>;
    /** This instance is the home until `drop`. Resolves to false if the store does not know it after a while. */
    keep(home: readonly string[]): Promise<boolean>;
    drop(home: readonly string[]): void;
  };
  /** The requests of clients that other instances have to answer. */
  readonly requests: {
    /** A handle for a session whose owner is not known here. */
    handleOf(lookup: SessionLookup): SessionHandle;
    /** Opens a session at the instance that is its home, or with `open` here. */
    openAt(home: string, lookup: SessionLookup, initialize: Message, reply: Reply, open: (reply: Reply) => void): void;
    /** Passes a POST to the instance that is the home. */
    postToHome(home: readonly string[], lookup: SessionLookup, post: ClientPost, reply: Reply): void;
    /** Releases the clients whose sessions other instances own. */
    leave(deadline: Promise<void>): Promise<void>;
  };
  /** Accepts requests of other instances. Rejects if the address cannot be listened on. */
  listen(): Promise<void>;
  /** Gives up name and lease. The sessions have been ended or released before. */
  close(): Promise<void>;
}

/** What the other instances need of the registry. */
export interface ClusterHost {
  /** The sessions of this instance. */
  sessions(): Iterable<Session>;
  /** The session of this instance with this key, ready or not. */
  find(key: string): Session | undefined;
  /** The client whose connection this instance holds, by key; undefined if there is none. */
  findConnected(key: string): SessionHandle | undefined;
  /** A configured server by its name. */
  currentServer(name: string): Server | undefined;
  /** A server as it was configured before, by its name and digest. Its sessions go on for a while. */
  formerServer(name: string, digest: string): Server | undefined;
  /** Makes a session that was taken over a session of this instance. */
  adopt(key: string, server: Server, adoption: Adoption): Session;
  /** A function that opens a session under this key; undefined if it cannot be opened here. */
  openerOf(key: string, opening: RemoteOpening, initialize: Message): ((reply: Reply) => void) | undefined;
  /** How long the store keeps the home of a client that does not come back, in milliseconds. */
  readonly homeTtlMs: number;
  /** False while no session may be taken over, because the instance is about to stop. */
  mayAdopt(): boolean;
  /** The session with this key that is ending here; undefined for none. */
  findEnding(key: string): Pick<Session, 'leavesNoRecord'> | undefined;
  readonly telemetry: SessionTelemetry;
}

/** The session that an `initialize` opens. Its id is not told: only the client's instance needs it (P12). */
export interface RemoteOpening {
  readonly server: string;
  readonly digest: string;
  readonly principal: Principal;
}

/** The other instances that hold a lease, by whether they answer this one. */
export interface PeerStates {
  readonly reachable: number;
  /** Those that do not answer, for the operator. */
  readonly unreachable: readonly { readonly instance: string; readonly address: string }[];
}
