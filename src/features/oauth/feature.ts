import type { OAuthFeature } from '../../app/features/access.ts';
import { createTokenChecks } from './access-token-checks.ts';
import { addMetadataRoute } from './oauth-metadata.ts';
import {
  metadataPathsOf,
  protectedResourceAt,
  resourceMetadata,
  rootMetadataPath,
} from './tokens/protected-resources.ts';
import { createPassthroughs } from './upstream/passthroughs.ts';
import { addRelayedMetadataRoute } from './upstream/upstream-metadata.ts';

export const oauth: OAuthFeature = {
  createTokenChecks,
  createPassthroughs,
  resourceAt: protectedResourceAt,
  metadataOf: resourceMetadata,
  rootMetadataPath,
  addMetadataRoute,
  addRelayedMetadata(routes, { login, resourcePath, publicUrl, isOnly, originRules }) {
    const paths = [...metadataPathsOf(resourcePath, publicUrl), ...(isOnly ? [rootMetadataPath] : [])];
    for (const path of paths)
      if (!routes.has(path)) addRelayedMetadataRoute(routes.app, path, { login, resourcePath, originRules });
  },
};
