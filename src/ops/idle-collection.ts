import { getHeapSpaceStatistics } from 'node:v8';
import { contain } from '../util/boundary.ts';

const lookMs = 250;

/** A gateway at rest allocates less than this between two looks. */
const restBytes = 256 * 1024;

/** V8 starts with about this much space for new objects. */
const startBytes = 2 * 1024 * 1024;

/** V8 gives memory back within a few seconds of rest. The limit applies if a flag keeps the space large. */
const maxCollections = 40;

/** Earlier versions keep the space for new objects large. */
const firstVersion = 24;

/**
 * Collects new objects while the gateway is at rest, until V8 has given back the memory of a burst. V8 doubles its space
 * for new objects during a burst, and makes the space smaller only in a collection. A gateway at rest allocates too
 * little to cause one (docs/decisions/0129). Does nothing unless `node --expose-gc` started the process.
 * @returns a function that ends this
 */
export function collectAtRest(
  collect: NodeJS.GCFunction | undefined = globalThis.gc,
  version: string = process.versions.node,
  spaceForNewObjects: () => NewSpace = newSpace,
): () => void {
  if (collect === undefined || Number.parseInt(version, 10) < firstVersion) return () => undefined;
  let collections = 0;
  let used = spaceForNewObjects().space_used_size;
  const look = (): void => {
    const now = spaceForNewObjects();
    const allocated = Math.abs(now.space_used_size - used);
    used = now.space_used_size;
    if (now.space_size <= startBytes || allocated > restBytes) {
      collections = 0;
      return;
    }
    if (collections === maxCollections) return;
    collections += 1;
    collect({ type: 'minor' });
    used = spaceForNewObjects().space_used_size;
  };
  const timer = setInterval(() => contain('background', look), lookMs).unref();
  return () => clearInterval(timer);
}

/** The sizes of V8's space for new objects, in bytes. */
export interface NewSpace {
  readonly space_size: number;
  readonly space_used_size: number;
}

const newSpace = (): NewSpace =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space') ?? {
    space_size: 0,
    space_used_size: 0,
  };
