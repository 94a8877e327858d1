// src/features/oauth/upstream: clients that authorize at the server itself: its challenges, its metadata, and its verdict on tokens.
import type { IncomingMessage } from 'node:http';
import type { RelayedDocument } from '../../../app/features/access.ts';
import { type BearerToken, readBearerToken } from '../../../core/auth/bearer-token.ts';
import { anonymousIdentity, type Challenge, type Identity } from '../../../core/auth/identity.ts';
import type { SendUpstream } from '../../../core/auth/upstream-request.ts';
import type { Reason } from '../../../core/protocol/faults.ts';
import { pathOf } from '../../../core/protocol/http/request-header.ts';
import { parseBounded } from '../../../core/protocol/json.ts';
import { anonymous, type Principal } from '../../../core/protocol/principal.ts';
import { rootMetadataPath } from '../tokens/protected-resources.ts';
import { challengeForClients, metadataUrlIn } from './challenge.ts';
import { UpstreamMetadata } from './relayed-metadata.ts';
import { TokenChecks, type TokenVerdict } from './token-checks.ts';

/** Options of `Passthrough`. */
export interface PassthroughOptions {
  /** The URL of the server. */
  readonly url: URL;
  readonly transport: 'auto' | 'http' | 'sse';
  readonly send: SendUpstream;
  /** The URL of the gateway for clients, without a slash at the end; undefined where each request's Host names it. */
  readonly publicUrl: string | undefined;
  /** The scheme for clients that the Host header does not tell. */
  readonly scheme: 'http' | 'https';
  /** The path of the resource for each path of an endpoint. Messages of HTTP+SSE belong to the stream. */
  readonly resources: ReadonlyMap<string, string>;
  /** Returns the time in milliseconds. */
  now(): number;
}

/** A longer claim names nobody; see `verifyToken`. */
const maxNameLength = 1_024;

/**
 * Admits the clients of a server at which they authorize themselves. The server alone judges tokens. The gateway asks it
 * before a token opens anything that the gateway answers without the server: sessions, streams and their log
 * (docs/decisions/0037).
 */
export class Passthrough {
  readonly #options: PassthroughOptions;
  readonly #checks: TokenChecks;
  readonly #metadata: UpstreamMetadata;

  constructor(options: PassthroughOptions) {
    this.#options = options;
    const { url, send, now } = options;
    this.#checks = new TokenChecks(options);
    this.#metadata = new UpstreamMetadata({
      url,
      send,
      now,
      findNamedUrl: async () => {
        const verdict = await this.#checks.check(undefined);
        return verdict.outcome === 'refused' ? metadataUrlIn(verdict.challenge ?? '') : undefined;
      },
      needsToken: async () => (await this.#checks.check(undefined)).outcome === 'refused',
    });
  }

  /**
   * Authenticates a request to the Streamable HTTP endpoint. A POST goes to the server, which judges the token itself. A
   * request without a token reaches only sessions that began without one.
   */
  readonly authenticate = (incoming: IncomingMessage): Identity | Challenge | Promise<Identity | Challenge> => {
    if (hasProofScheme(incoming)) return this.#refuseProof(incoming);
    const token = readBearerToken(incoming);
    const isChecked = token !== undefined && incoming.method !== 'POST';
    if (isChecked) return this.authenticateChecked(incoming);
    const identity = identify(token, this.#options.url);
    return token === undefined ? identity : { ...identity, account: { ...anonymous, client: `token ${token.sha256}` } };
  };

  /** Authenticates a request that the gateway may answer without the server. */
  readonly authenticateChecked = (incoming: IncomingMessage): Identity | Challenge | Promise<Identity | Challenge> => {
    if (hasProofScheme(incoming)) return this.#refuseProof(incoming);
    const token = readBearerToken(incoming);
    const verdict = this.#checks.check(token);
    return verdict instanceof Promise
      ? verdict.then((found) => this.#conclude(found, token, incoming))
      : this.#conclude(verdict, token, incoming);
  };

  /** Implements `ChallengeRewriter`. */
  challengeFor(incoming: IncomingMessage, reason: Reason, received: string | undefined): string | undefined {
    if (reason === 'upstream_unauthorized') {
      this.#checks.forget(readBearerToken(incoming));
      this.#metadata.expire();
    }
    const metadataUrl = this.#metadataUrl(incoming);
    const passedOn = received && challengeForClients(received, metadataUrl);
    if (passedOn) return passedOn;
    // RFC 9110, section 15.5.2: a 401 has a challenge.
    return reason === 'upstream_unauthorized' ? `Bearer resource_metadata="${metadataUrl}"` : undefined;
  }

  /** Returns the server's metadata for the endpoint at a path. Never rejects. */
  metadata(incoming: IncomingMessage, resourcePath: string): Promise<RelayedDocument> {
    return this.#metadata.relay(this.#baseUrl(incoming) + resourcePath);
  }

  #conclude(verdict: TokenVerdict, token: BearerToken | undefined, incoming: IncomingMessage): Identity | Challenge {
    if (verdict.outcome === 'accepted') return identify(token, this.#options.url);
    if (verdict.outcome === 'unknown') return { reason: 'token_not_checked' };
    const reason = verdict.status === 401 ? 'upstream_unauthorized' : 'upstream_forbidden';
    return { reason, wwwAuthenticate: this.challengeFor(incoming, reason, verdict.challenge) };
  }

  /** A token that is sent with a proof: the server would get neither the proof nor a token that is good without it. */
  #refuseProof(incoming: IncomingMessage): Challenge {
    const description = 'The gateway cannot pass on DPoP proofs to this server';
    const parameters = [
      'error="invalid_token"',
      `error_description="${description}"`,
      `resource_metadata="${this.#metadataUrl(incoming)}"`,
    ];
    return { reason: 'upstream_proof_refused', wwwAuthenticate: `Bearer ${parameters.join(', ')}` };
  }

  #baseUrl({ headers }: IncomingMessage): string {
    const { publicUrl, scheme } = this.#options;
    const base = publicUrl ?? `${scheme}://${headers.host ?? ''}`;
    // The name of a host in a network need not be one in a URL: `web.1`.
    return URL.canParse(base) ? base : `${scheme}://localhost`;
  }

  #metadataUrl(incoming: IncomingMessage): string {
    const path = pathOf(incoming.url ?? '');
    const resourcePath = this.#options.resources.get(path) ?? path;
    const { origin, pathname } = new URL(this.#baseUrl(incoming) + resourcePath);
    return origin + rootMetadataPath + pathname;
  }
}

/** True for `Authorization: DPoP` (RFC 9449, section 7.1). */
const hasProofScheme = ({ headers }: IncomingMessage): boolean => /^dpop(?: |$)/i.test(headers.authorization ?? '');

/** Identifies the bearer of a token. What a token allows is unknown, so the identity has neither scopes nor claims. */
const identify = (token: BearerToken | undefined, url: URL): Identity =>
  token === undefined ? anonymousIdentity : { ...anonymousIdentity, principal: principalOf(token, url) };

/**
 * Names the user of a token. The claims are not verified. They only keep users apart who have a token that the server
 * accepts, and a refreshed token has the same ones. Nothing is granted because of them (docs/decisions/0037). All tokens
 * without claims count as one user: their sessions are kept apart by the session id.
 */
function principalOf({ text }: BearerToken, { origin }: URL): Principal {
  const { iss, sub, client_id: client } = readClaims(text);
  const [issuer, subject] = [readName(iss), readName(sub)];
  if (issuer === undefined || subject === undefined) return { ...anonymous, issuer: origin, subject: 'bearer' };
  return { issuer, subject, client: readName(client) ?? '' };
}

/** Headers are shorter, so no token has more claims (P8). */
const maxClaimsBytes = 64 * 1024;

/** Reads the claims of a JWT (RFC 7519, section 7.2) without the library, which only verification is worth loading. */
function readClaims(token: string): Readonly<Record<string, unknown>> {
  const [, payload, signature] = token.split('.');
  if (payload === undefined || signature === undefined) return {};
  try {
    const claims = parseBounded(Buffer.from(payload, 'base64url'), maxClaimsBytes);
    return typeof claims === 'object' && claims !== null ? (claims as Record<string, unknown>) : {};
  } catch {
    return {}; // the token is no JWT
  }
}

const readName = (claim: unknown): string | undefined =>
  typeof claim === 'string' && claim !== '' && claim.length <= maxNameLength ? claim : undefined;
