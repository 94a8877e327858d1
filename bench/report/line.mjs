// One cell as one line, for who watches a run.

/** Everything that was not right in a cell, as one text; empty if it was. */
export const faultsOf = ({ failed, faults = {}, notClosed, answers, events }) =>
  [
    failed,
    ...Object.entries(faults).map(([what, times]) => `${times} x ${what}`),
    notClosed > 0 && `${notClosed} sessions not closed`,
    answers === 0 && !(events > 0) && 'no answers',
  ]
    .filter(Boolean)
    .join('; ');

export function lineOf(row) {
  const { scenario, target, startMs, steps, seconds } = row;
  const parts = [scenario.padEnd(24), target.padEnd(14)];
  if (startMs !== undefined) parts.push(`${startMs.toFixed(0)} ms`);
  if (steps !== undefined) parts.push(steps.map(stepText).join(', '));
  if (seconds !== undefined) parts.push(rateText(row));
  return [...parts, faultsOf(row)].join('  ');
}

const stepText = ({ sessions, residentKib }) => `${sessions}: ${(residentKib / 1024).toFixed(1)} MiB`;

function rateText({ answers, events, seconds, latency, callLatency, gatewayCpu }) {
  const rate = events > 0 ? `${(events / seconds).toFixed(0)} events/s` : `${(answers / seconds).toFixed(0)}/s`;
  const { p50, p99 } = latency;
  const ofCall = callLatency === undefined ? '' : `  (a call p50 ${callLatency.p50?.toFixed(2)} ms)`;
  return `${rate}  p50 ${p50?.toFixed(2)} p99 ${p99?.toFixed(2)} ms${ofCall}  gateway CPU ${gatewayCpu.toFixed(2)} s`;
}
