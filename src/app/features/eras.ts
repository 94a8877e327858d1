import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import type { KnownUsers } from '../../config/servers/process-sharing.ts';
import type { BackendEnd, OpenBackend } from '../../core/backend/backend.ts';
import type { CreateInterceptor } from '../../core/backend/link/link.ts';
import type { ListSubscriber } from '../../core/backend/list-reader.ts';
import type { KeepProbed } from '../../core/backend/starting/probed-backend.ts';
import type { CallTelemetry } from '../../core/call/call-events.ts';
import type { StreamableHttpEndpointOptions } from '../../core/http/endpoints/streamable-http.ts';
import type { CredentialMarks } from '../../core/keys/credential-marks.ts';
import type { StateKeys } from '../../core/keys/state-keys.ts';
import type { ConsoleTask } from '../../core/ops/console-hook.ts';
import type { ServerEvent, TaskEvent } from '../../core/ops/server-events.ts';
import type { SharedServerEvent } from '../../core/ops/shared-server-events.ts';
import type { Reason } from '../../core/protocol/faults.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { Sessions } from '../../core/registry/sessions.ts';
import type { Server } from '../../core/server/server.ts';
import type { CreateGroupRules } from '../../core/session/group-rules.ts';
import type { Changes, Reservations, Values } from '../../core/store/shared/shared-data.ts';
import type { ClusterStore, Store } from '../../core/store/store.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import type { CallTasks, CallTasksOptions } from './call-tasks.ts';

/** Clients and servers of the revision without sessions, and the translation between the eras (docs/eras.md). */
export interface ErasFeature {
  connect(options: ErasOptions): GatewayEras;
  /** Finds out the era of a server that nobody uses yet. */
  detect(options: DetectEraOptions): EraProbe;
}

/** What the servers of a gateway share. */
export interface ErasOptions {
  readonly config: GatewayConfig;
  /** The version of the gateway. */
  readonly version: string;
  readonly keys: StateKeys;
  readonly marks: CredentialMarks;
  readonly store: Store;
  /** The same store if other instances share it. */
  readonly shared: ClusterStore | undefined;
  /** The same store if it can outlive this process. */
  readonly lasting: ClusterStore | undefined;
  readonly emit: Emit<ServerEvent | SharedServerEvent>;
  /** A change could not be announced. */
  onFailed(cause: unknown): void;
}

/** The eras of a gateway. */
export interface GatewayEras {
  /** For the sessions that many modern clients share. */
  readonly groupRules: CreateGroupRules;
  serve(options: ServeErasOptions): ServedEras;
  /** Announces nothing from now on. Call it before the store is closed. */
  close(): void;
}

/** One server, whose era may be unknown. */
export interface ServeErasOptions {
  readonly config: ServerConfig;
  /** The server as it was started, without what this feature adds. */
  readonly server: Server;
  /** The access for modern clients; undefined if the transport has no modern era. */
  readonly access: ModernAccess | undefined;
  /** Opens a backend for a legacy session at the server itself. */
  readonly direct: OpenBackend;
  /** The processes of legacy sessions; undefined if none is kept. */
  readonly legacy: LegacyProcesses | undefined;
  readonly sessions: Sessions;
  /** What the gateway knows of its users now. */
  knownUsers(): KnownUsers;
  /** As `knownUsers`, where credentials of clients for the server tell users apart, too. */
  knownUsersOfSessions(): KnownUsers;
  /** Of the backends that modern clients share. */
  readonly interceptors: readonly CreateInterceptor[];
  /** After this time the shared process starts without a client. */
  readonly startAheadMs: number;
}

/** What the processes of legacy sessions say of the era. */
export interface LegacyProcesses {
  /** A process serves sessions. */
  readonly isServing: boolean;
  /** After so long without an answer, a second process has probably not started because of the first, in milliseconds. */
  readonly silenceMs: number;
  /** A probe did not start beside the process that serves. */
  noteOnlyProcess(): void;
}

/** The access of modern clients to a server. */
export interface ModernAccess {
  /** True for a server at an http(s):// URL. */
  readonly isOverHttp: boolean;
  /** Opens the backend that modern clients share. */
  readonly open: OpenBackend;
  /** Opens a backend for a probe of the era. It serves nobody while it is probed. */
  readonly openForProbe: OpenBackend;
  /** Absent where no backend of a probe can serve a client. */
  readonly keepProbed?: KeepProbed;
  /** Over HTTP: the same with the legacy era. */
  readonly openLegacyForProbe?: OpenBackend;
}

/** A server that clients of both eras can use. */
export interface ServedEras {
  /** Opens a backend for a legacy session, whatever the era of the server is. */
  readonly open: OpenBackend;
  /** Of the backends that sessions open. */
  readonly sessionInterceptors: readonly CreateInterceptor[];
  /** The era; undefined while it is unknown. */
  readonly era: Era | undefined;
  /** The calls of modern clients in flight. */
  readonly callsInFlight: number;
  /** Gives the server as its sessions see it, before the first request. */
  join(server: Server): void;
  /** Finds out the era for a probe. */
  findEra(): Promise<Era | Reason>;
  /** Asks the process that all modern clients share; undefined if there is none. Rejects with the reason. */
  readonly askShared: ((timeoutMs: number) => Promise<void>) | undefined;
  /** The endpoints of the server for messages of the modern era, and for legacy ones without a session. */
  endpoints(options: EraEndpointOptions): Pick<StreamableHttpEndpointOptions, 'modern' | 'sessionless'>;
  /** Ends the subscriptions in order (P9). */
  closeSubscriptions(): void;
  /** Ends the server in order (P9); sessions are served until they have ended. Resolves when no process is left. */
  drain(graceMs: number, sessionsEnded: Promise<unknown>): Promise<void>;
}

/** Options of the endpoints. */
export interface EraEndpointOptions {
  readonly server: { readonly name: string };
  readonly tasks: CallTasks | undefined;
  readonly commitAfterMs: number;
  /** How long a call may be silent before its client gets progress; for ever by default. */
  readonly progressMs?: number;
  readonly slowReaderMs: number;
  /** Reports the calls; absent if nobody wants reports. */
  readonly calls?: CallTelemetry | undefined;
}

/** A server that nobody uses yet. */
export interface DetectEraOptions {
  /** Opens a connection of the modern era, or a process. */
  readonly open: OpenBackend;
  /** Over HTTP: opens a connection of the legacy era. */
  readonly openLegacy: OpenBackend | undefined;
  readonly version: string;
  /** How long the server has to answer. */
  readonly timeoutMs: number;
  /** How long the server may be silent before a second process shows whether it answers `initialize`. */
  readonly witnessAfterMs: number;
  /** Reports text of the server that is no message. */
  onNoise(line: Buffer): void;
  /** Reports the end of a process that was closed because it did not answer in time. */
  onLateEnd(end: BackendEnd): void;
}

/** The result of a probe: the era, or the end that prevented an answer. */
export type ProbeOutcome =
  | {
      readonly era: Era;
      /** True for a refusal that legacy servers give, but that can have another reason. */
      readonly isDoubtful: boolean;
    }
  | {
      readonly era: undefined;
      readonly end: BackendEnd | undefined;
      /** The command sends back what it gets. */
      readonly isEcho?: boolean;
    };

/** A running probe. */
export interface EraProbe {
  readonly outcome: Promise<ProbeOutcome>;
  /** Ends the probe and its process. Resolves when both are gone. */
  close(): Promise<void>;
}

/** Calls that become tasks (docs/long-calls.md). */
export interface TasksFeature {
  create(options: TasksOptions): GatewayTaskSet;
  /** Calls the tools of one server that run only as tasks. `learn` gets the lists of the server. */
  runServerTasks(): { readonly interceptor: CreateInterceptor; readonly learn: ListSubscriber };
}

/** What tasks need of a gateway. */
export interface TasksOptions {
  readonly values: Values;
  readonly changes: Changes;
  readonly reservations: Reservations;
  readonly instances: {
    /** The name of this instance now. */
    current(): string;
    /** False if an instance is lost. */
    isAlive(instance: string): Promise<boolean>;
  };
  /** How long a task is kept after its end, in milliseconds. */
  readonly ttlMs: number;
  /** The longest time that a call may take, in milliseconds. */
  readonly maxRunMs: number;
  /** The longest result. */
  readonly maxTextBytes: number;
  /** A task was made, or has ended. */
  onTask(event: TaskEvent): void;
  /** A fault of the gateway itself. */
  onFailed(cause: unknown): void;
}

/** The tasks of a gateway. */
export interface GatewayTaskSet {
  /** The tasks of the calls to one server. */
  of(options: CallTasksOptions): CallTasks;
  /** The tasks whose calls run at this instance, newest first. */
  list(): readonly ConsoleTask[];
  /** Cancels a task that runs at this instance, by its short name. False if there is none. */
  cancelByName(name: string): boolean;
  /** This instance is about to stop: tasks that lose their call are left to others. */
  leave(): void;
  close(): Promise<void>;
}
