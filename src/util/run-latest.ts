import { detach } from './boundary.ts';

/**
 * Wraps a task so that only one run is active at a time. Calls during a run lead to exactly one more run after it.
 * @param run a rejection is reported; the next call runs the task again
 * @returns the function to call when the task is due
 */
export function runLatest(run: () => Promise<void>): () => void {
  let isDue = false;
  let isRunning = false;
  const runWhileDue = async (): Promise<void> => {
    isRunning = true;
    try {
      while (isDue) {
        isDue = false;
        await run();
      }
    } finally {
      isRunning = false;
    }
  };
  return () => {
    isDue = true;
    if (!isRunning) detach('shared_process', runWhileDue());
  };
}
