// What is read from a cell; undefined where it has none of it.

const positive = (value) => (Number.isFinite(value) && value > 0 ? value : undefined);
const micro = 1e6;

export const callsPerSecond = (row) => positive(row.answers / row.seconds);
export const eventsPerSecond = (row) => positive(row.events / row.seconds);
export const medianMs = (row) => positive(row.latency?.p50);
/** The median of a session with one call, as a multiple of that of a further call in it. */
export const sessionPerCallRatio = ({ latency, callLatency }) => positive(latency?.p50 / callLatency?.p50);
export const p99Ms = (row) => positive(row.latency?.p99);
/** The longest call of another session while sessions were opened. */
export const longestBesideMs = (row) => positive(row.longestBesideMs);
/** Microseconds of processor time of the gateway's processes, or of Redis, for each call or event. */
export const cpuOfCalls = (row) => positive((row.gatewayCpu / row.answers) * micro);
export const cpuOfEvents = (row) => positive((row.gatewayCpu / row.events) * micro);
export const redisCpuOfCalls = (row) => positive((row.redisCpu / row.answers) * micro);
export const redisCpuOfEvents = (row) => positive((row.redisCpu / row.events) * micro);
export const listenMs = (row) => positive(row.listenMs);
export const startMs = (row) => positive(row.startMs);
/** Of the gateway's processes, resident, at the end of a measurement. */
export const memoryMib = (row) => positive(row.residentKib / 1024);

/** Of a search for the worst input (worst.mjs): its CPU per byte as a multiple of that of many small tokens, and the longest step. */
export const worstCpuRatio = ({ worstCpu, tokensCpu }) => positive(worstCpu / tokensCpu);
export const worstStepMs = ({ stepMs }) => positive(stepMs);

const growth = (from, to, what = 'residentKib') => (to[what] - from[what]) / (to.sessions - from.sessions);

/** KiB by which the gateway, or Redis, grows with each session, from the fewest to the most. */
export const kibPerSession = ({ steps }) => steps && positive(growth(steps[0], steps.at(-1)));
export const redisKibPerSession = ({ steps }) => steps && positive(growth(steps[0], steps.at(-1), 'redisKib'));
/**
 * The same from 1,000 sessions to 2,000: what one session more takes. Before, the space that V8 has for new objects grows
 * to its limit, which a process pays once.
 */
export const kibAtMargin = ({ steps }) => {
  const [from, to] = [1_000, 2_000].map((count) => steps?.find(({ sessions }) => sessions === count));
  return from && to && positive(growth(from, to));
};
/** The same between the last two steps, as a multiple of that between all others: 1 for growth that is linear. */
export const bend = ({ steps }) =>
  steps && positive(growth(steps.at(-2), steps.at(-1)) / growth(steps[0], steps.at(-2)));

export function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Three digits. */
export function number(value) {
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
