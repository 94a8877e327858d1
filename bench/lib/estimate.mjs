// About how long cells take, to be told before they run.

/** With the start of the target; sessions are opened and closed at about 100 a second together. */
const startMs = 700;
const perSessionMs = 10;

export function estimateMs({
  kind,
  warmMs = 0,
  runMs = 0,
  steps = [],
  settleMs = 0,
  watchMs = 0,
  count = 1,
  sessions = 0,
  warmCount = 0,
  maxCount = 0,
}) {
  if (kind === 'session-calls') return startMs + (warmCount + maxCount) * perSessionMs;
  if (kind === 'start') return count * startMs;
  const idleMs = steps.length * (settleMs + watchMs) + (steps.at(-1) ?? sessions) * perSessionMs;
  return startMs + warmMs + runMs + idleMs;
}
