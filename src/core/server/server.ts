// src/core/server: a configured server, as the other rooms see it.
import type { BackendEnd, OpenBackend } from '../backend/backend.ts';
import type { RerunPolicy } from '../call/rerun.ts';
import type { Affinity } from '../protocol/affinity.ts';
import type { ClientCredentials } from '../protocol/http/client-credentials.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';

/** One configured server, as sessions use it. */
export interface Server {
  readonly name: string;
  /** Identifies the server's configuration. An instance with another digest must not restore the server's sessions. */
  readonly digest: string;
  readonly open: OpenBackend;
  /** Reads how the server introduces itself, in each successful answer to `initialize` or `server/discover`. */
  readonly introduction?: { note(answer: Buffer): void } | undefined;
  /** The client headers that the server gets, in lower case; absent for none. */
  readonly forwardHeaders?: readonly string[];
  /** The further credentials of each client that the server gets and requires; absent for none. */
  readonly credentials?: ClientCredentials | undefined;
  /** True if the server gets a token of each user, in exchange for the user's access token (docs/decisions/0037). */
  readonly exchangesTokens?: boolean;
  /** What each server of a view gets of its clients; absent where none gets anything. */
  readonly memberNeeds?: readonly MemberNeeds[] | undefined;
  /** Reads the call that a client makes through another tool; absent if there is no such tool. */
  readonly unwrapCall?: UnwrapCall | undefined;
  /**
   * Set if something decides about each request by its sender on its way to the server: the names of the headers that it
   * may see, in lower case.
   */
  readonly shownHeaders?: readonly string[] | undefined;
  /** True if clients authorize at the server itself. The gateway passes on their tokens, and the server's refusals. */
  readonly authorizesClients?: boolean;
  /** True if the gateway does not run the server. The server may then be away for a while and come back by itself. */
  readonly isRemote: boolean;
  /** True if sessions never have a process of their own, but share one. */
  readonly sharesProcess?: boolean;
  /** How many processes a session has that combines servers. Absent for a single server. */
  readonly processes?: number;
  /** True if sessions may use processes of earlier sessions. Their holders then report each start. */
  readonly keepsProcesses?: boolean;
  /** Which clients come back to the same state; absent if the operator does not say (docs/decisions/0105). */
  readonly affinity?: Affinity | undefined;
  /**
   * Names the sessions that one instance must have, because they may use each other's processes; undefined for a session
   * that may be anywhere. Absent if all may.
   */
  readonly homeOf?: (principal: Principal, initialize: Message) => readonly string[] | undefined;
  /** True while a session may leave its process for that of another state. Absent if no process is ever kept. */
  readonly canMoveSessions?: () => boolean;
  /** How long a new backend may take to answer `initialize`. */
  readonly startTimeoutMs: number;
  /** The treatment of a session whose backend ends by itself (docs/design.md, D5). */
  readonly onBackendExit: 'restore' | 'end';
  /** The idle time after which a session releases its backend until the session is used again; absent for never. */
  readonly hibernateAfterMs?: number | undefined;
  /** Decides which calls are run again after a restore. */
  readonly reruns: RerunPolicy;
}

/** A call in its own form, and the name of its tool. */
export interface UnwrappedCall {
  readonly message: Message;
  readonly name: string;
}

/** Reads the call that a message of a client stands for; undefined if it stands for itself. */
export type UnwrapCall = (message: Message) => UnwrappedCall | undefined;

/** What a server of a view gets of each client. */
export type MemberNeeds = Required<Pick<Server, 'name' | 'forwardHeaders' | 'credentials' | 'exchangesTokens'>>;

/**
 * True for a server that gets headers, credentials or tokens of its clients, so that its answers may differ between
 * clients.
 */
export const differsByClient = ({
  forwardHeaders = [],
  credentials,
  exchangesTokens = false,
  memberNeeds,
}: Server): boolean =>
  forwardHeaders.length > 0 || credentials !== undefined || exchangesTokens || memberNeeds !== undefined;

/**
 * True if the server has refused the token of one client, where clients authorize at the server. That is a step of the
 * client's login, and no failure of the server: anybody can cause it.
 */
export const isClientRefused = (
  { isUnauthorized = false }: BackendEnd,
  { authorizesClients = false }: Pick<Server, 'authorizesClients'>,
): boolean => isUnauthorized && authorizesClients;
