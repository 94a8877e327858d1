/** How often the gateway looks whether its parent still runs. */
const lookEveryMs = 1_000;

/** True if `npx` started this program itself. A program that `npx` started passes the same variables on to its children. */
const isStartedByNpx = ({
  npm_lifecycle_event: event,
  npm_lifecycle_script: script = '',
}: NodeJS.ProcessEnv): boolean => event === 'npx' && /^["']?mcp-gangway\b/.test(script);

/**
 * Shuts the gateway down, as at SIGTERM, when the `npx` that started it has ended. On SIGTERM, `npx` and its shell end
 * without passing the signal on, and would leave the gateway and its servers running.
 */
export function endWithNpx(environment: NodeJS.ProcessEnv, onEnded: () => void): void {
  if (!isStartedByNpx(environment)) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onEnded();
  }, lookEveryMs).unref();
}
