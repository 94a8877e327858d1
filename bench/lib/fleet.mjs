// The targets that are running, at most one of each, and not too many beside the one that is measured.
import { isAlive } from './proc.mjs';
import { startTarget, stopTarget } from './target-process.mjs';

/** Idle gateways renew leases, say, and are part of what is measured beside them. */
const maxRunning = 8;

/** @param onStopped is told how each target ended: what was wrong with that, by what it was */
export function createFleet({ places, token, logFileOf, onStopped }) {
  /** By name, the one that was used last at the end. */
  const running = new Map();

  const stop = async (target) => {
    const found = running.get(target.name);
    if (found === undefined) return;
    running.delete(target.name);
    const { exits, isForced, orphans } = await stopTarget(found.started);
    const faults = {};
    const wrong = exits.find((exit) => exit?.code !== 0);
    if (isForced) faults['had to be killed'] = 1;
    else if (wrong !== undefined && !target.isPeer) faults[`exit ${wrong.code ?? wrong.signal}`] = 1;
    if (orphans > 0) faults['processes left behind'] = orphans;
    onStopped(target, faults);
  };

  const start = async (target) => {
    await stop(target);
    while (running.size >= maxRunning) await stop(running.values().next().value.target);
    const started = await startTarget(target.name, target, { places, token, logFile: logFileOf(target.name) });
    running.set(target.name, { target, started });
    return started;
  };

  return {
    /** Starts a target, in place of its processes that run. */
    start,
    /** The target to load: the one that runs, if all of it still does, else a new one. */
    async ready(target) {
      const found = running.get(target.name);
      if (found === undefined || !found.started.pids.every(isAlive)) return start(target);
      running.delete(target.name);
      running.set(target.name, found);
      return found.started;
    },
    stop,
    /** Ends all that run, one after the other. */
    async stopAll() {
      for (const { target } of [...running.values()]) await stop(target);
    },
  };
}
