import type { GatewayConfig, RemoteServer, ServerConfig } from '../../config/config.ts';
import type { UpstreamIdentity } from '../../config/options/identity-options.ts';
import type { PackageRequest } from '../../config/servers/package-request.ts';
import type { Reuse, SharedBy } from '../../config/servers/process-sharing.ts';
import type { SendUpstream } from '../../core/auth/upstream-request.ts';
import type { OpenBackend } from '../../core/backend/backend.ts';
import type { UpstreamTls } from '../../core/backend/upstream-tls.ts';
import type { UpstreamTokens } from '../../core/backend/upstream-tokens.ts';
import type { ServerEvent } from '../../core/ops/server-events.ts';
import type { Affinity } from '../../core/protocol/affinity.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import type { Principal } from '../../core/protocol/principal.ts';
import type { Server } from '../../core/server/server.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import type { LegacyProcesses } from './eras.ts';

/** The functions that open the backends of a server. */
export interface Openers {
  /** Opens a backend for a session. */
  readonly open: OpenBackend;
  /** Opens the backend that modern clients share; undefined if the transport has no modern era. */
  readonly openModern: OpenBackend | undefined;
  /** True for a server at an http(s):// URL, where `openModern` opens another kind of backend than `open`. */
  readonly isOverHttp: boolean;
}

/** What opens connections to a server. */
export interface TransportOptions {
  readonly config: RemoteServer;
  readonly gateway: GatewayConfig;
  /** The version of the gateway. */
  readonly version: string;
  readonly tls: UpstreamTls;
  /** The tokens that all connections to the server share; undefined if it needs none. */
  readonly tokens: UpstreamTokens | undefined;
  /** How long the server may take for its first answer. */
  readonly answerTimeoutMs: number;
  readonly emit: Emit<ServerEvent>;
  /** A connection is open. */
  onStarted(): void;
}

/** Servers at a URL, or that exchange STDIO lines over a socket. */
export interface RemoteFeature {
  openers(options: TransportOptions): Openers;
  /** Sends requests of the gateway itself to a server. */
  createSend(server: RemoteServer, url: URL, tls: UpstreamTls): SendUpstream;
}

/** Servers that are packages of npm or PyPI (docs/recipes/packages.md). */
export interface PackagesFeature {
  /** The packages in a folder, which need not exist. */
  at(folder: string): Packages;
}

/** The installed packages of a folder. All methods throw or reject with a `PackageFailure`. */
export interface Packages {
  readonly folder: string;
  /** How to start a package now; undefined if it must be installed first. */
  find(request: PackageRequest): PackageProgram | undefined;
  /** The version that is installed; undefined for none. */
  versionOf(request: PackageRequest): string | undefined;
  /** Installs a package, unless it is installed. All who ask at the same time wait for the same installation. */
  install(request: PackageRequest, run: RunTool): Promise<PackageProgram>;
  /** Installs the newest version that was asked for. The next process of a server has it. */
  upgrade(request: PackageRequest, run: RunTool): Promise<PackageProgram>;
  /** Removes what installations have left behind that were cut off, once. */
  sweep(): Promise<void>;
}

/** The program of an installed package. */
export interface PackageProgram {
  readonly name: string;
  readonly version: string;
  /** A path, or a name that is searched in PATH. */
  readonly command: string;
  readonly args: readonly string[];
  /** The folder of the programs of the package and of its dependencies. */
  readonly programs: string;
}

/** Why a package cannot be used. The message and the output are for the operator. */
export interface PackageFailure extends Error {
  readonly output: readonly string[];
}

/** Runs a program of this machine to its end, with the variables that programs of its kind need to reach a registry. */
export type RunTool = (tool: Tool) => Promise<ToolEnd | 'not-found'>;

/** A program of this machine. */
export interface Tool {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The name of the program whose variables it reads; by default its own. */
  readonly as?: string;
}

/** How a program has ended. */
export interface ToolEnd {
  /** Null if a signal has ended it. */
  readonly exitCode: number | null;
  /** The last part of what it has written. */
  readonly output: string;
}

/** Several servers as one backend (docs/views.md). */
export interface ViewsFeature {
  open(options: ViewOptions): OpenBackend;
}

/** A view, and how it finds its servers. */
export interface ViewOptions {
  readonly config: ServerConfig;
  readonly address: Extract<NonNullable<ServerConfig['address']>, { readonly transport: 'view' }>;
  readonly version: string;
  /** How long a cancelled request of a server counts as running, in milliseconds. */
  readonly cancelGraceMs: number;
  readonly emit: Emit<ServerEvent>;
  /** Finds a server as its sessions use it now; undefined if there is no such server any more. */
  serverOf(server: string): Server | undefined;
}

/** The identity of the gateway, or of each user, at a server (docs/recipes/upstream-identity.md). */
export interface UpstreamIdentityFeature {
  tokensOf(server: string, identity: UpstreamIdentity, emit: Emit<ServerEvent>): UpstreamTokens;
}

/** Processes that several sessions use, one after another or at the same time. */
export interface SharingFeature {
  keep(options: KeptProcessesOptions): ProcessKeeper;
}

/** Keeps the processes of ended sessions for later ones. */
export interface ProcessKeeper {
  /** Opens a backend for a session: a kept process, one that others use, or a new one. */
  readonly open: OpenBackend;
  readonly running: LegacyProcesses;
  /** What names the instance to which a client comes back; see `Server.homeOf`. */
  homeOf(principal: Principal, initialize: Message): readonly string[] | undefined;
  /** Ends the processes that no session uses. */
  clear(): void;
  /** Ends all of them. Resolves when they have ended. */
  close(): Promise<void>;
}

/** Options of `KeptProcesses`. */
export interface KeptProcessesOptions {
  readonly open: OpenBackend;
  /** May change at any time. Processes that are already kept are then not used again. */
  reuse(): Reuse;
  readonly sharedBy?: SharedBy;
  /** Which sessions belong together; undefined if the clients tell (`SharedBy`). */
  readonly affinity?: Affinity | undefined;
  /** The most processes with the same key. A new session gets the one with the fewest open calls. */
  readonly poolMax?: number;
  /** How long a server may still write about a cancelled request, in milliseconds. */
  readonly cancelGraceMs?: number;
  /** A message of a shared process belongs to no session that can be known. */
  onDropped?(): void;
  /** A kept process has not answered a ping. Called once. */
  onPingUnknown?(): void;
  /** Only one process of the server can run, as its second one has shown. Called once. */
  onOnlyProcess?(): void;
  /** How long a server may take to answer `initialize`, in milliseconds. */
  readonly startTimeoutMs?: number;
  /** How long a process is kept after its last session, in milliseconds. */
  readonly lingerMs: number;
  /** The most kept processes without a session (P8). */
  readonly maxKept: number;
}
