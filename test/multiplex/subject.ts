import type { LogLevel } from '../../src/core/protocol/modern/log-levels.ts';
import type { FakeServer } from '../support/fake-backend.ts';

/** A JSON-RPC message as a test writes and reads it. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
export type Wire = any;

/** What one client got. */
export interface Received {
  readonly client: number;
  /** The request whose answer carried it; undefined if the client has one stream for everything. */
  readonly beside?: number | undefined;
  /** A message; undefined for the end of a request or of the client's connection. */
  readonly message?: Wire;
  /** The gateway has ended the request `beside`, or the connection of the client. */
  readonly isEnd?: boolean;
}

/** How a kind of multiplexer differs from the others, where both may be right. */
export interface Rules {
  /** True if the server may ask the clients. */
  readonly canAsk: boolean;
  /** True if a request of the server is always refused. */
  readonly refusesQuestions: boolean;
  /** True if each request has an answer of its own, so that a message must also find the right one of a client. */
  readonly hasAnswers: boolean;
  /** True if a client gets no log messages unless it has asked for them. */
  readonly isSilentByDefault: boolean;
  /** True if all clients are known to be one user, who may get what is about any call that this user has cancelled. */
  readonly isOfOneUser: boolean;
  /** True if a user counts from the first request on; false if the user counts from the start of the connection. */
  readonly notesUsersLate: boolean;
  /** False if clients subscribe, and set log levels, elsewhere. */
  readonly hasWishes: boolean;
  /** A method that reaches the server, and during which it may not ask. */
  readonly plainMethod: string;
  /** True if a lost server is started again for the same clients. */
  readonly restarts: boolean;
}

/** Clients that share one server through a multiplexer of the gateway. All methods return at once. */
export interface Subject {
  readonly rules: Rules;
  readonly server: FakeServer;
  request(client: number, request: Wire, level?: LogLevel): void;
  /** The client waits no more for a request. */
  cancel(client: number, id: number): void;
  /** The client sends any other message. */
  send(client: number, message: Wire): void;
  subscribe(client: number, uri: string, id: number): void;
  unsubscribe(client: number, uri: string, id: number): void;
  setLevel(client: number, level: LogLevel, id: number): void;
  pause(client: number): void;
  resume(client: number): void;
  leave(client: number): void;
  /** Removes and returns what clients got since the last call, in order. */
  take(): readonly Received[];
  close(): Promise<void>;
}

/** How long a cancelled request is remembered. */
export const graceMs = 5_000;

/** Creates a multiplexer with clients that are ready to send requests; `users[i]` is the user of client `i`. */
export type CreateSubject = (users: readonly string[], canAsk: boolean) => Promise<Subject>;
