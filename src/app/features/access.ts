import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import type { GatewayConfig, RemoteServer, ServerConfig } from '../../config/config.ts';
import type { Authenticator } from '../../core/auth/authenticate.ts';
import type { Authenticate } from '../../core/auth/identity.ts';
import type { OriginRules } from '../../core/auth/origin-rules.ts';
import type { SendUpstream } from '../../core/auth/upstream-request.ts';
import type { ChallengeRewriter } from '../../core/http/request-context.ts';
import type { App, Routes } from '../../core/http/router.ts';
import type { StateKeys } from '../../core/keys/state-keys.ts';
import type { ClusterStore } from '../../core/store/store.ts';

/** Access tokens of OAuth, and clients that authorize at the server itself (docs/oauth.md). */
export interface OAuthFeature {
  /** Creates the checks of access tokens. */
  createTokenChecks(config: GatewayConfig, secrets: SharedSecrets, logger: Logger): Promise<CreateTokenAuthenticator>;
  /** Makes the admissions of servers with `auth: upstream`. */
  createPassthroughs(options: PassthroughsOptions): PassthroughTo;
  /** Describes the resource at a path of the gateway. `publicUrl` is the URL before all paths. */
  resourceAt(publicUrl: string, path: string): ProtectedResource;
  /** Makes the metadata of a resource (RFC 9728, section 2). */
  metadataOf(resource: ProtectedResource, content: ResourceMetadataOptions): object;
  /** The additional metadata path of a gateway's single server. */
  readonly rootMetadataPath: string;
  addMetadataRoute(app: App, path: string, document: object): void;
  /** Adds the metadata of a server at which clients authorize, at paths that are free. */
  addRelayedMetadata(routes: Routes, options: RelayedMetadata): void;
}

/** The store and the keys that instances share. */
export interface SharedSecrets {
  readonly keys: StateKeys;
  /** Undefined for a single instance. */
  readonly store: ClusterStore | undefined;
}

/** Creates an authenticator that accepts tokens for these audiences. */
export type CreateTokenAuthenticator = (audiences: ReadonlySet<string>) => Authenticator;

/** Creates the admission of clients that authorize at their server; undefined for a server with `auth: gateway`. */
export type PassthroughTo = (config: GatewayConfig, server: ServerConfig) => UpstreamLogin | undefined;

/** How servers with `auth: upstream` are reached, and where they are served. */
export interface PassthroughsOptions {
  createSend(server: RemoteServer, url: URL): SendUpstream;
  /** The path of the resource for each path of a server's endpoints. */
  resourcesOf(config: GatewayConfig, server: ServerConfig): ReadonlyMap<string, string>;
}

/** The admission of clients that authorize at their server. */
export interface UpstreamLogin extends ChallengeRewriter {
  readonly authenticate: Authenticate;
  /** As `authenticate`, where the gateway answers before the server sees the credentials: they are checked first. */
  readonly authenticateChecked: Authenticate;
  /** The metadata of the server, with the gateway's URL as the resource. */
  metadata(incoming: IncomingMessage, resourcePath: string): Promise<RelayedDocument>;
}

/** The server's metadata for clients of the gateway, or the reason why there is none. */
export type RelayedDocument =
  | { readonly ok: true; readonly document: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly reason: 'missing' | 'unusable' | 'bound' };

/** An endpoint as a protected resource of OAuth. */
export interface ProtectedResource {
  /**
   * The identifier: the URL at which clients reach the endpoint (2026-07-28, basic/authorization, "Canonical Server
   * URI").
   */
  readonly url: string;
  /** The URL of the resource's metadata (RFC 9728, section 3.1). */
  readonly metadataUrl: string;
  /** The paths at which the gateway serves the metadata. */
  readonly metadataPaths: readonly string[];
}

/** The contents of a resource's metadata beside the resource's own URL. */
export interface ResourceMetadataOptions {
  /** The trusted issuers. */
  readonly issuers: readonly string[];
  /** The scopes that every request needs. A challenge asks for further scopes of single tools when they are needed. */
  readonly scopes: readonly string[];
  /** The text that clients put before the names of scopes; see `requestedScope`. */
  readonly scopePrefix?: string | undefined;
  /** Whether tokens may or must be bound to a key (RFC 9449). */
  readonly dpop?: 'off' | 'accept' | 'require';
  /** True if tokens may be bound to client certificates (RFC 8705). */
  readonly acceptsCertificates?: boolean;
}

/** Where the metadata of a server at which clients authorize is served. */
export interface RelayedMetadata {
  readonly login: UpstreamLogin;
  readonly resourcePath: string;
  readonly publicUrl: string | undefined;
  /** True if the gateway has no other server, so that its own metadata path is this server's. */
  readonly isOnly: boolean;
  readonly originRules: OriginRules;
}
