/** RFC 9728, section 3. */
const wellKnown = '/.well-known/oauth-protected-resource';

/** An endpoint as OAuth sees it: a protected resource. */
export interface ProtectedResource {
  /** Its identifier: the URL at which clients reach it (2026-07-28, basic/authorization, "Canonical Server URI"). */
  readonly url: string;
  /** The URL of its metadata (RFC 9728, section 3.1). */
  readonly metadataUrl: string;
  /** Where the metadata is served. */
  readonly metadataPaths: readonly string[];
}

/** The resource at a path of the gateway. `publicUrl` is what stands before its paths, without a slash at the end. */
export function protectedResourceAt(publicUrl: string, path: string): ProtectedResource {
  const { origin, pathname } = new URL(publicUrl + path);
  const metadataPath = wellKnown + pathname;
  return {
    url: publicUrl + path,
    metadataUrl: origin + metadataPath,
    // A proxy that takes a prefix away may take it away here too.
    metadataPaths: [...new Set([metadataPath, wellKnown + path])],
  };
}

/** Where the metadata of the only server of a gateway is found as well (basic/authorization, "Protected Resource Metadata"). */
export const rootMetadataPath = wellKnown;

/** What the metadata of a resource says beside its own name. */
export interface ResourceMetadataOptions {
  /** The trusted issuers. */
  readonly issuers: readonly string[];
  /** What every request needs; what single tools need beyond that is asked for when it is needed. */
  readonly scopes: readonly string[];
}

/** The metadata of a resource (RFC 9728, section 2). */
export const resourceMetadata = ({ url }: ProtectedResource, { issuers, scopes }: ResourceMetadataOptions): object => ({
  resource: url,
  authorization_servers: issuers,
  ...(scopes.length > 0 && { scopes_supported: scopes }),
  bearer_methods_supported: ['header'],
});
