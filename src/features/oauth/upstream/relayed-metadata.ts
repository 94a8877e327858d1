import type { RelayedDocument } from '../../../app/features/access.ts';
import type { SendUpstream } from '../../../core/auth/upstream-request.ts';
import { rootMetadataPath } from '../tokens/protected-resources.ts';

/** Options of `UpstreamMetadata`. */
export interface UpstreamMetadataOptions {
  /** The URL of the server. */
  readonly url: URL;
  readonly send: SendUpstream;
  /** Asks the server for a challenge, and resolves with the metadata URL in it. Undefined for a server without one. */
  findNamedUrl(): Promise<URL | undefined>;
  /** Resolves with true if the server refuses requests without a token. */
  needsToken(): Promise<boolean>;
  /** Returns the time in milliseconds. */
  now(): number;
}

/** How long a document is used again, so that many clients cause few requests (P8). */
const keptMs = 1_000;

type Document = Readonly<Record<string, unknown>>;

/** A document that is fetched, or was fetched. */
interface KeptDocument {
  readonly document: Promise<Document | 'missing' | 'unusable'>;
  hasBegun: boolean;
  /** No use after this time. */
  until: number;
}

/**
 * The protected-resource metadata of a server at which clients authorize (RFC 9728). It is fetched from the server's own
 * origin alone: a metadata URL elsewhere could make the gateway send requests into the operator's network.
 */
export class UpstreamMetadata {
  readonly #options: UpstreamMetadataOptions;
  #kept: KeptDocument | undefined;

  constructor(options: UpstreamMetadataOptions) {
    this.#options = options;
  }

  /**
   * Returns the metadata with the gateway's URL as the resource. Never rejects.
   * @param resource the URL at which clients reach the server through the gateway
   */
  async relay(resource: string): Promise<RelayedDocument> {
    const { now, url } = this.#options;
    if (this.#kept === undefined || now() >= this.#kept.until) this.#kept = this.#fetchAfter(this.#kept);
    const kept = this.#kept;
    const document = await kept.document;
    if (typeof document === 'object') {
      if (document['dpop_bound_access_tokens_required'] === true) return { ok: false, reason: 'bound' };
      return { ok: true, document: forClients(document, url, resource) };
    }
    if (this.#kept === kept) this.#kept = undefined;
    return { ok: false, reason: document };
  }

  /**
   * The server has refused a request. Its metadata may have changed, and the client is about to read the metadata: the
   * server may have moved to another authorization server.
   */
  expire(): void {
    if (this.#kept?.hasBegun === true) this.#kept.until = Number.NEGATIVE_INFINITY;
  }

  /** Fetches the document after an earlier fetch has ended, so that one runs at a time (P8). */
  #fetchAfter(earlier: KeptDocument | undefined): KeptDocument {
    const begin = (): KeptDocument['document'] => {
      kept.hasBegun = true;
      kept.until = this.#options.now() + keptMs;
      return this.#fetch();
    };
    const document = Promise.resolve(earlier?.document)
      .then(begin)
      .catch(() => 'unusable' as const);
    const kept: KeptDocument = { document, hasBegun: false, until: Number.POSITIVE_INFINITY };
    return kept;
  }

  /**
   * Fetches the document from the URL in the server's challenge, or from the well-known URLs of the server (2026-07-28,
   * basic/authorization/authorization-server-discovery). A server of 2025-03-26 has no such document: its origin is its
   * authorization server.
   */
  async #fetch(): Promise<Document | 'missing' | 'unusable'> {
    const { url, findNamedUrl, needsToken } = this.#options;
    const named = await findNamedUrl();
    const { origin, pathname } = url;
    const wellKnown = [pathname === '/' ? '' : pathname, ''].map((path) => new URL(origin + rootMetadataPath + path));
    for (const from of named?.origin === origin ? [named] : wellKnown) {
      const found = await this.#fetchFrom(from);
      if (found !== 'missing') return found;
    }
    return (await needsToken()) ? { resource: url.href, authorization_servers: [origin] } : 'missing';
  }

  async #fetchFrom(url: URL): Promise<Document | 'missing' | 'unusable'> {
    const headers = { accept: 'application/json' };
    const { status, json } = await this.#options.send({ method: 'GET', url, headers, readsJson: true });
    if (status >= 400 && status < 500 && status !== 429) return 'missing';
    const isObject = typeof json === 'object' && json !== null && !Array.isArray(json);
    return status === 200 && isObject ? (json as Document) : 'unusable';
  }
}

/**
 * Rewrites the metadata for the gateway's clients, which compare the resource with the URL that they use. A document
 * about another resource than the server keeps its resource, so that clients refuse it as they do without a gateway. So
 * does one that fits the URL of the clients, where the server's name leads to the gateway: its tokens keep their audience.
 * Signed metadata names the server's URL and would prevail (RFC 9728, section 2.2), so it is left out. Members about
 * DPoP are left out too: a client would get a token that is bound to its key, and no proof reaches the server.
 */
function forClients(received: Document, url: URL, resource: string): Document {
  const document = Object.fromEntries(Object.entries(received).filter(([name]) => !isLeftOut(name)));
  const named = document['resource'];
  return covers(named, url) && !covers(named, new URL(resource)) ? { ...document, resource } : document;
}

const isLeftOut = (name: string): boolean => name === 'signed_metadata' || name.startsWith('dpop_');

/** True if a resource identifier is for this URL: the same origin, and the same path or one above it. */
function covers(resource: unknown, { origin, pathname }: URL): boolean {
  if (typeof resource !== 'string' || !URL.canParse(resource)) return false;
  const named = new URL(resource);
  const withSlash = (path: string): string => (path.endsWith('/') ? path : `${path}/`);
  return named.origin === origin && withSlash(pathname).startsWith(withSlash(named.pathname));
}
