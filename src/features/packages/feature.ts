import type { PackagesFeature } from '../../app/features/servers.ts';
import { PackageCache } from './package-cache.ts';

const caches = new Map<string, PackageCache>();

export const packages: PackagesFeature = {
  at(folder) {
    const known = caches.get(folder);
    if (known !== undefined) return known;
    const cache = new PackageCache(folder);
    caches.set(folder, cache);
    return cache;
  },
};
