import { detach } from './boundary.ts';
/**
 * What is done whenever it is due, one at a time: what becomes due while it is done is done after it, once.
 * @param run what it rejects with is reported; it is run again when it is due again
 * @returns what to call when it is due
 */
export function runLatest(run: () => Promise<void>): () => void {
  let isDue = false;
  let isRunning = false;
  const go = async (): Promise<void> => {
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
    if (!isRunning) detach('shared_process', go());
  };
}
