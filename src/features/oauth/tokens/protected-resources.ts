import type { ProtectedResource, ResourceMetadataOptions } from '../../../app/features/access.ts';
import { proofAlgorithms } from '../../../core/auth/challenges.ts';
import { requestedScope } from '../../../core/auth/scopes/scope-names.ts';

/** RFC 9728, section 3. */
const wellKnown = '/.well-known/oauth-protected-resource';

/**
 * Describes the resource at a path of the gateway. `publicUrl` is the URL before all paths, without a slash at the end.
 */
export function protectedResourceAt(publicUrl: string, path: string): ProtectedResource {
  const { origin, pathname } = new URL(publicUrl + path);
  const metadataPath = wellKnown + pathname;
  return {
    url: publicUrl + path,
    metadataUrl: origin + metadataPath,
    // A proxy that removes a prefix from paths may also remove it from this path.
    metadataPaths: [...new Set([metadataPath, wellKnown + path])],
  };
}

/** The additional metadata path of a gateway's single server (basic/authorization, "Protected Resource Metadata"). */
export const rootMetadataPath = wellKnown;

/**
 * Returns the paths of a resource's metadata for a gateway whose URL for clients may be unknown. A proxy that removes a
 * prefix from paths may also remove it from this path.
 */
export const metadataPathsOf = (path: string, publicUrl: string | undefined): readonly string[] =>
  publicUrl === undefined ? [wellKnown + path] : protectedResourceAt(publicUrl, path).metadataPaths;

/** Makes the metadata of a resource (RFC 9728, section 2). */
export const resourceMetadata = (
  { url }: ProtectedResource,
  { issuers, scopes, scopePrefix, dpop = 'off', acceptsCertificates = false }: ResourceMetadataOptions,
): object => ({
  resource: url,
  authorization_servers: issuers,
  ...(scopes.length > 0 && { scopes_supported: scopes.map((scope) => requestedScope(scope, scopePrefix)) }),
  bearer_methods_supported: ['header'],
  ...(dpop !== 'off' && { dpop_signing_alg_values_supported: proofAlgorithms }),
  ...(dpop === 'require' && { dpop_bound_access_tokens_required: true }),
  ...(acceptsCertificates && { tls_client_certificate_bound_access_tokens: true }),
});
