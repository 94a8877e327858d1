// What the console needs of the gateway that it shows. The types of the gateway say more, and fit to these.

/** The work that only the gateway can do. */
export interface ConsoleHost {
  /**
   * Does work whose fault must not reach its caller. The fault is logged.
   * @param onFault ends the thing that the work belongs to
   */
  contain(work: () => void, onFault?: () => void): void;
  /** Replaces likely credentials in a text. */
  redact(text: string): string;
  /** True if a reason refuses a request because of its sender. */
  refusesSender(reason: string): boolean;
  /** False for calls that take as long as a start or a subscription, which says nothing about the speed of a server. */
  isMeasured(method: string | undefined): boolean;
  /**
   * The name under which a call of a tool or prompt counts. There are few such names, since a client can call any.
   * @returns undefined for any other call
   */
  labelOf(call: Pick<EndedCall, 'origin' | 'method' | 'name'>): string | undefined;
}

/** The short name of a session, in which no id appears. */
export interface SessionName {
  readonly server: string;
  readonly session: string;
}

/** Why a process or connection of a server ended. */
export interface BackendEnd {
  /** `closed` if the gateway has closed it. */
  readonly reason: string;
  /** One sentence for the operator. */
  readonly detail: string;
  /** The last lines that the server wrote. They can hold secrets. */
  readonly lastOutput?: readonly string[];
}

/** How a call ended: with an answer of the server, a fault of the gateway, or a client that has left. */
export type CallOutcome =
  | { readonly kind: 'ok' | 'tool_error' | 'left' }
  | { readonly kind: 'error'; readonly code: number | undefined }
  | { readonly kind: 'fault'; readonly reason: string };

/** Whose call it was, and at which server. */
export interface CallOrigin {
  readonly server: string;
  /** Undefined if the request was refused before its sender was known. */
  readonly principal: object | undefined;
  /** The short name of its session, if it has one. */
  readonly session?: string | undefined;
}

/** A call has ended. Times are in milliseconds. */
export interface EndedCall {
  readonly type: 'call-ended';
  readonly origin: CallOrigin;
  readonly method: string | undefined;
  /** The tool or prompt. */
  readonly name: string | undefined;
  readonly outcome: CallOutcome;
  readonly durationMs: number;
  /** The part of it that the server took; undefined if the server did not get the request. */
  readonly serverMs: number | undefined;
  /** The part of it for which neither the server nor the gateway is responsible. */
  readonly waitedMs: number;
  /** True if the answer is a task that the gateway made of the call, which goes on. */
  readonly isTask?: boolean;
  /** The name and version that the client gave itself in the call, if it has no session in which it did. */
  readonly client?: string | undefined;
  /** The arguments of a tool, if the page may show contents. */
  readonly args?: CallArguments | undefined;
  /** The answer of the server to a failed call, if the page may show contents. */
  readonly answer?: Uint8Array | undefined;
}

/** The arguments of a tool: JSON, or only its length if it is too long to keep. */
export interface CallArguments {
  readonly bytes: number;
  readonly text: Uint8Array | undefined;
}

/** Why a sender was refused: `unknown key`, and what was seen instead. It contains no secret. */
export interface RefusalDetail {
  readonly why: string;
  readonly seen?: unknown;
}

/** The refusal of a sender. */
export interface Challenge {
  readonly reason: string;
  readonly detail?: RefusalDetail | undefined;
}

/** The outcome of a resume: `resumed`, `complete` if nothing follows, or a kind of failure. */
export type ResumeOutcome = 'resumed' | 'complete' | 'history_lost' | 'unknown' | 'failed';

/** The events of a gateway that the console records. */
export type ConsoleEvent =
  | EndedCall
  | Readonly<
      | { type: 'request-refused'; server: string; reason: string }
      | { type: 'sender-refused'; server: string; challenge: Challenge; address?: string | undefined }
      | { type: 'server-stderr'; server: string; line: string; pid: number | undefined }
      | { type: 'server-removed'; server: string }
      | { type: 'only-process'; server: string }
      | { type: 'session-started'; name: SessionName; protocolVersion: string; startMs: number }
      | { type: 'session-ended'; name: SessionName; reason: string }
      | { type: 'session-adopted'; name: SessionName; pending: number; lostInstance: string | undefined }
      | { type: 'session-hibernated'; name: SessionName; reason: string }
      | { type: 'takeover-limit-reached'; name: SessionName }
      | { type: 'stream-resumed'; server: string; session?: string | undefined; outcome: ResumeOutcome }
      | { type: 'backend-ended'; name: SessionName; end: BackendEnd }
      | {
          type: 'backend-restored';
          name: SessionName;
          restoration: { readonly isWaking: boolean; readonly losses: number };
        }
      | {
          type: 'session-message-dropped';
          name: SessionName;
          reason: string;
          count?: number;
          text: Buffer | undefined;
        }
      | { type: 'shared-message-dropped'; server: string; reason: string; count?: number; text: Buffer | undefined }
      | { type: 'shared-server-ready'; server: string; startMs: number }
      | { type: 'shared-server-ended'; server: string; end: BackendEnd; inFlight: number }
      | { type: 'shared-start-failed'; server: string; end: BackendEnd; isByProbe: boolean }
      | { type: 'shared-crash-loop'; server: string }
      | { type: 'view-crash-loop'; member: string }
      | {
          type: 'configuration-reloaded';
          added: readonly string[];
          changed: readonly string[];
          removed: readonly string[];
        }
      | { type: 'configuration-refused'; detail: string }
      | { type: 'store-joined' }
      | { type: 'store-failed' }
    >;

/** The types of these events. */
export type ConsoleEventType = ConsoleEvent['type'];

/** A number that code adds to. */
export interface Meter {
  add(amount: number): void;
}

/** Receives what is announced under a topic. */
export interface ChangeListener {
  onChange(text: Buffer): void;
  onMissed(): void;
}

/** Announcements to all instances that subscribe to a topic. */
export interface Changes {
  publish(topic: string, text: Buffer): Promise<void>;
  /** The returned function ends the subscription. */
  subscribe(topic: string, listener: ChangeListener): Promise<() => void>;
}

/** Where sessions and events are kept, and whether that place answers. */
export interface StoreState {
  readonly kind: string;
  readonly isUp: boolean;
  /** The directory of the store in files. */
  readonly directory?: string | undefined;
  /** The addresses of other instances that share the store and do not answer this one. */
  readonly unreachable?: readonly string[];
  /** The sessions in files that no client has used since the start; absent for none. */
  readonly waiting?: number;
}

/** The state of a session as its owner reports it. */
export interface SessionState {
  readonly name: SessionName;
  readonly protocolVersion: string;
  readonly snapshot: SessionSnapshot;
}

/** The moving parts of a session. Times are on the monotonic clock, in milliseconds. */
export interface SessionSnapshot {
  readonly kind: 'session' | 'group' | 'one stream';
  readonly principal: { readonly subject: string };
  /** The name and version that the client gave itself; empty if it gave none. */
  readonly client: string;
  readonly isHibernating: boolean;
  /** Requests in flight. */
  readonly calls: number;
  readonly streams: number;
  readonly startedAt: number;
  readonly lastActivityAt: number;
}

/** A call that has become a task, and runs at this instance. */
export interface RunningTask {
  /** A short name, which is no use to clients. */
  readonly name: string;
  readonly server: string;
  readonly tool: string | undefined;
  /** The user; undefined without authentication. */
  readonly user: string | undefined;
  readonly status: string;
  /** By the system's clock, in milliseconds. */
  readonly createdAt: number;
}

/** What a check of a server has found: sentences, each with the lines that belong to it. The last one is the summary. */
export interface ServerCheck {
  readonly isFine: boolean;
  readonly results: readonly {
    readonly kind: 'ok' | 'fail' | 'note' | 'summary';
    readonly text: string;
    readonly details: readonly string[];
  }[];
}

/** The memory of one process. `group` is the process that the gateway has started. */
export interface GroupMemory {
  readonly group: number;
  readonly residentBytes: number;
}

/** The owner of backends: a session, by its short name, or all clients of a server together. */
export interface BackendOwner {
  readonly server: string;
  readonly session?: string | undefined;
}

/** Returns the map key of an owner. Server names contain no space. */
export const backendOwnerKey = ({ server, session = '' }: BackendOwner): string => `${server} ${session}`;

/** A live backend. */
export interface LiveBackend extends BackendOwner {
  readonly pid: number | undefined;
  /** The number of backends that the owner has lost before. */
  readonly restarts: number;
  /** When the backend was opened, on the monotonic clock in milliseconds. */
  readonly openedAt: number;
}

/** The backends of a gateway that are open, and what has passed them. */
export interface LiveBackends {
  live(): Iterable<LiveBackend>;
  /** Undefined for an owner that has opened none. */
  countsOf(owner: BackendOwner): { readonly messages: number; readonly calls: number } | undefined;
}

/** A message in the form that the page shows. */
export interface PassedMessage {
  /** The messages of a watched session are numbered from 1. */
  readonly number: number;
  /** The number of the request that this response answers, if it was seen. */
  readonly answers?: number;
  /** The number of the same request, which the gateway sends again after the loss of the server. */
  readonly repeats?: number;
  /** The fault with which the gateway has ended a request that the server had not answered. */
  readonly fault?: string;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly from: 'client' | 'server';
  readonly kind: 'request' | 'response' | 'notification' | 'noise' | 'fault';
  /** The method; of a response, the method of its request if that was seen. */
  readonly method?: string | undefined;
  /** The name of the called tool or prompt. The URI of a resource may have contents and is left out. */
  readonly name?: string;
  /** In bytes. */
  readonly size: number;
  /** The time from the request to this response, if the request was seen. */
  readonly ms?: number | undefined;
  /** True for an error response, and for the result of a tool that failed. */
  readonly isError?: boolean;
  /** The content, if the operator allows it. */
  readonly text?: string;
}

/** A listener to the messages of one session. */
export interface MessageListener {
  readonly owner: BackendOwner;
  onMessage(message: PassedMessage): void;
  /** False while further messages are only counted, so their contents need not be read. */
  hasRoom?(): boolean;
}

/** The messages of sessions, for pages that show one of them. */
export interface MessageSource {
  /** Adds a listener. Returns a function that removes it. */
  watch(listener: MessageListener): () => void;
}
