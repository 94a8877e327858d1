// The targets that are running, at most one process of each.
import { isAlive } from './proc.mjs';
import { startTarget, stopTarget } from './target-process.mjs';

/** @param onStopped is told how each process ended: what was wrong with that, by what it was */
export function createFleet({ places, token, logFileOf, onStopped }) {
  const running = new Map();

  const stop = async (target) => {
    const process = running.get(target.name);
    if (process === undefined) return;
    running.delete(target.name);
    const { exit, isForced, orphans } = await stopTarget(process);
    const faults = {};
    if (isForced) faults['had to be killed'] = 1;
    else if (exit?.code !== 0 && !target.isPeer) faults[`exit ${exit?.code ?? exit?.signal}`] = 1;
    if (orphans > 0) faults['processes left behind'] = orphans;
    onStopped(target, faults);
  };

  const start = async (target) => {
    await stop(target);
    const process = await startTarget(target.name, target, { places, token, logFile: logFileOf(target.name) });
    running.set(target.name, process);
    return process;
  };

  return {
    /** Starts a target, in place of its process that runs. */
    start,
    /** The process to load: the one that runs, if it still does, else a new one. */
    async ready(target) {
      const process = running.get(target.name);
      return process !== undefined && isAlive(process.pid) ? process : start(target);
    },
    /** Ends these targets, one after the other. */
    async stopAll(targets) {
      for (const target of targets) await stop(target);
    },
  };
}
