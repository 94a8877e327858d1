import type { PeerStates, RemoteOpening } from '../../../core/registry/session-cluster.ts';
import type { CompleteAnswer, Headers, Reply, RequestFacts } from '../../../core/reply/reply.ts';
import type { GroupRequestOptions } from '../../../core/session/session-handle.ts';

/** What an owner writes to a stream now and then: a comment, by which the ingress knows that the connection works. */
export const beat = Buffer.from(':\n\n');

/** What a client asked, as its instance passes it to the owner of the session. The body of a POST travels beside it. */
export type PeerRequest = PeerContext &
  (
    | {
        readonly kind: 'post';
        /** The client has sent an array. */
        readonly isBatch?: true | undefined;
        /** An earlier owner may have received the POST. */
        readonly again?: true | undefined;
        readonly group?: GroupRequestOptions | undefined;
        readonly opens?: RemoteOpening | undefined;
      }
    | {
        readonly kind: 'listen';
        /** The client's Last-Event-ID, or the position where an earlier owner stopped; then `continues` is true. */
        readonly after?: string | undefined;
        readonly continues?: true | undefined;
      }
    | { readonly kind: 'remove' }
  );

/** Asks an instance whether it answers. */
export interface Ping {
  readonly kind: 'ping';
  readonly request: RequestFacts;
}

interface PeerContext {
  readonly key: string;
  /** The facts without those that mean something only at the client's instance. */
  readonly request: RequestFacts;
  /** Nobody owns the session, and the sender is about to stop: the receiver takes it over first. */
  readonly adopts?: true | undefined;
}

/** The owner does not have the session. `ending`: it is about to give the session up, or to get it; ask again. */
export type Denial = 'moved' | 'ending';

/** The owner's side of a response that another instance sends to the client. */
export interface PeerReply extends Reply {
  deny(why: Denial): void;
}

/**
 * Why a request got no answer. `unsent`: the owner did not receive it. `refused`: the owner did not act on it, because
 * the two instances differ in version or secret. `lost`: the owner may have received it.
 */
export type PeerFailure = 'unsent' | 'refused' | 'lost';

/** Receives the response of an owner: one answer, or a stream and its end. Nothing follows a failure. */
export interface PeerListener {
  answered(answer: CompleteAnswer): void;
  denied(why: Denial): void;
  opened(headers: Headers | undefined): void;
  /**
   * Receives a part of the stream's text, with any limits between the parts.
   * @returns false to receive no more before `PeerCall.resume`
   */
  received(text: Buffer): boolean;
  /** @param isMoved true if another instance has the session now, and continues the stream */
  ended(isMoved: boolean): void;
  failed(why: PeerFailure): void;
}

/** A request that is under way. */
export interface PeerCall {
  /** False as long as the owner cannot have received anything. */
  readonly isSent: boolean;
  resume(): void;
  /** The client is gone, or needs no answer of this owner. The listener hears nothing more. */
  abort(): void;
}

/** What the way to other instances asks of its instance. */
export interface PeerHost {
  /** The name of this instance now. */
  name(): string;
  /** Answers a request of another instance. Must not throw. */
  serve(request: PeerRequest, body: Buffer, reply: PeerReply): void;
}

/** The way to other instances and from them. Tests replace it. */
export interface PeerTransport {
  /** Connects the instance, before anything else. */
  attach(host: PeerHost): void;
  /** Accepts requests of other instances. Rejects if the address cannot be listened on. */
  listen(): Promise<void>;
  ask(to: string, request: PeerRequest, body: Buffer | undefined, listener: PeerListener): PeerCall;
  /** The other instances that hold a lease. */
  readonly states: PeerStates;
  /** The names of those that this instance can ask, as far as it knows. */
  readonly names: readonly string[];
  /** The instance has a name, or another one: others find it under that name from now on. */
  publish(): void;
  /**
   * True if the instance is there under another name. It has lost its lease and got a new one, so it knows which of its
   * sessions are still its own, and its answers count.
   */
  isRenamed(instance: string): boolean;
  /** The instance is dead. */
  forget(instance: string): void;
  close(): Promise<void>;
}
