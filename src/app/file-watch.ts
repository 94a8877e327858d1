import { type StatsListener, unwatchFile, watchFile } from 'node:fs';

/**
 * How often files are looked at. By their state and not by events of the file system: those miss what is replaced by a link,
 * as Kubernetes does it, what an editor puts in the place of a file, and what lies on another host.
 */
const lookMs = 1_000;

/** Files that are looked at until that is stopped. */
export interface FileWatch {
  stop(): void;
}

/** Calls `onChange` when one of these files was changed, replaced, removed or made. Does not keep the process. */
export function watchFiles(paths: readonly string[], onChange: () => void): FileWatch {
  const onLook: StatsListener = (now, before) => {
    // To be read changes a file too.
    if (now.mtimeMs !== before.mtimeMs || now.ino !== before.ino || now.size !== before.size) onChange();
  };
  for (const path of paths) watchFile(path, { interval: lookMs, persistent: false }, onLook);
  return {
    stop() {
      for (const path of paths) unwatchFile(path, onLook);
    },
  };
}
