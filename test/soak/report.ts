import type { Ledger } from './ledger.ts';
import { busy, type FaultKind, faultKinds } from './ledger.ts';
import type { Round } from './rounds.ts';
import { expiringKeys, neededKeys, type Sample, type Used } from './samples.ts';
import { lowestOf, type Point, type Slope, slopeOf, surelyExceeds } from './slope.ts';
import { leaseMs, loadMs } from './stage.ts';

/** A line fitted to a quantity of the run, and what it may be. */
export interface Bound {
  readonly name: string;
  readonly slope: Slope;
  readonly unit: string;
  readonly maxPerHour: number;
  /** True if it grows by more. */
  readonly exceeds: boolean;
}

const mib = 1024 * 1024;

/** Until here caches fill and code gets compiled: it is not looked at for growth. */
const warmUpMs = 15 * 60_000;

/** Of memory, the lowest value of so long is looked at: by then, garbage was collected. */
const windowMs = 5 * 60_000;

/**
 * Resident memory rises for most of an hour before it is level, and falls at times, since the allocator and V8 keep what is
 * free for the next use. In a shorter run, only the heap and the buffers tell whether there is a leak.
 */
const leastResidentMs = 90 * 60_000;

/** Growth of what must stay flat, of the instance that lives all the time and of Redis. */
export function boundsOf(samples: readonly Sample[]): readonly Bound[] {
  const later = samples.filter(({ atMs }) => atMs > warmUpMs);
  const points = (amountOf: (sample: Sample) => number | undefined): readonly Point[] =>
    later.flatMap((sample) => {
      const value = amountOf(sample);
      return value === undefined ? [] : [[sample.atMs, value] as const];
    });
  const first = ({ gateways }: Sample): Used | undefined => gateways[0];
  const inMib = (bytes: number | undefined): number | undefined => (bytes === undefined ? undefined : bytes / mib);
  const flat = (name: string, unit: string, maxPerHour: number, amountOf: (sample: Sample) => number | undefined) => {
    const slope = slopeOf(points(amountOf));
    return { name, slope, unit, maxPerHour, exceeds: slope.perHour > maxPerHour };
  };
  /** Of memory, which goes up and down by more than it may grow. */
  const memory = (name: string, maxPerHour: number, bytesOf: (used: Used) => number | undefined) => {
    const used = (sample: Sample): number | undefined => {
      const one = first(sample);
      return one && inMib(bytesOf(one));
    };
    const slope = slopeOf(lowestOf(points(used), windowMs));
    return { name, slope, unit: 'MiB', maxPerHour, exceeds: surelyExceeds(slope, maxPerHour) };
  };
  const resident = memory('resident memory of instance 0', 8, ({ rssBytes }) => rssBytes);
  const isLong = (samples.at(-1)?.atMs ?? 0) >= leastResidentMs;
  return [
    { ...resident, exceeds: isLong && resident.exceeds },
    memory('JavaScript heap of instance 0', 4, ({ heapBytes }) => heapBytes),
    memory('buffers of instance 0', 4, ({ externalBytes }) => externalBytes),
    flat('file descriptors of instance 0', '', 10, (one) => first(one)?.descriptors),
    flat('child processes of instance 0', '', 5, (one) => first(one)?.children),
    flat('needed keys in Redis', '', 30, (one) => one.redis && neededKeys(one)),
    flat('Redis memory', 'MiB', 2, (one) => inMib(one.redis?.usedBytes)),
  ];
}

export interface Told {
  readonly seed: number;
  readonly load: number;
  readonly minutes: number;
  readonly begun: Date;
  readonly hasSentinel: boolean;
  readonly clients: number;
  readonly gaps: number;
  /** So long clients were at work; what came then, until `totalMs`, were the checks of what is left. */
  readonly talkedMs: number;
  readonly totalMs: number;
  readonly ledger: Ledger;
  readonly rounds: readonly Round[];
  readonly base: Sample;
  readonly end: Sample;
  readonly bounds: readonly Bound[];
  /** How many sessions and streams clients have opened. */
  readonly opened: number;
}

const row = (...cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
const sumOf = (rounds: readonly Round[], key: keyof Round): number => rounds.reduce((sum, one) => sum + one[key], 0);
const keysText = (sample: Sample): string =>
  [...(sample.redis?.keys ?? [])]
    .map(([kind, count]) => `${count} ${kind}`)
    .sort()
    .join(', ') || 'none';

const minutesText = (ms: number): string => `${(ms / 60_000).toFixed(ms < 600_000 ? 1 : 0)} minutes`;
const msText = (ms: number | undefined): string => (ms === undefined ? '–' : `${ms} ms`);

/** What the names in the table of clients stand for. */
const serversText = [
  'Each row names what the clients do, and some rows also name the server. `stdio` is a STDIO server, and `own` the same with a process for each session. `asks` is a STDIO server that requests input from its clients, and `modern` a 2026-07-28 server. `remote` and `old` are the fourth gateway, over Streamable HTTP and HTTP+SSE (2024-11-05).',
  'The hibernating sessions use a STDIO server with `--defaults.hibernateAfter`. Modern clients use revision 2026-07-28, and all other clients use older revisions.',
  '',
  'The outcome `broken` means that the connection broke before the answer. The outcome `already gone` means that the session no longer existed. All other outcomes except `answered` are reasons in errors from the gateway.',
].join('\n');

const allKinds: readonly FaultKind[] = [...faultKinds, busy];

/** What each kind of fault does, in words. */
const faultTexts: Readonly<Record<FaultKind, string>> = {
  kill: 'gateway killed (`kill -9`)',
  drain: 'gateway drained (SIGTERM)',
  freeze: 'gateway frozen for longer than its lease',
  stall: 'gateway frozen for a third of its lease',
  partition: 'gateway cut off from Redis',
  'link partition': 'gateway cut off from one or both others, which reach Redis',
  'link one way': 'the same in one direction: it asks nobody, or nobody asks it',
  'redis restart': 'Redis restarted with its data',
  'redis empty': 'Redis restarted without its data',
  'redis pause': 'Redis paused',
  'redis slow': 'slow connections to Redis',
  'redis full': 'Redis full, so that it refuses writes',
  'redis full and kill': 'Redis full, and a gateway killed meanwhile',
  'redis disk full': 'disk of Redis full, so that it refuses writes',
  'redis failover': 'master of Redis killed, and its replica promoted by a sentinel',
  'redis failover behind': 'the same with a replica that lacks the newest writes',
  'scripts flushed': 'Redis scripts flushed',
  'child killed': 'server process killed (SIGKILL)',
  'child ended': 'server process terminated (SIGTERM)',
  'child stopped': 'server process frozen',
  'upstream cut': 'connections to the remote server cut',
  'upstream disk full': 'disk of the remote server full, which keeps its sessions in files',
  'clients cut': 'connections of clients cut',
  [busy]: 'machine busy (not injected)',
};

/** The report as Markdown. @param image the file of its chart, which is beside it */
export function reportOf(told: Told, image: string): string {
  const { ledger, rounds, base, end, bounds } = told;
  const faultsOf = (kind: string) => ledger.faults.filter((fault) => fault.kind === kind);
  const usedText = (used: Used | undefined): string =>
    used === undefined
      ? 'not running'
      : `${Math.round(used.rssBytes / mib)} MiB, ${used.descriptors} file descriptors, child processes: ${used.children}`;
  const lines = [
    '<!-- Written by node test/run.mjs soak --write docs/soak.md -->',
    '',
    '# The soak',
    '',
    `The soak test ran three gateways behind a load balancer without stickiness. The three gateways shared one Redis${told.hasSentinel ? ', with a replica and a sentinel' : ''}, reached each other over TLS, and a fourth gateway was their remote server.`,
    `The run had ${minutesText(told.talkedMs)} of mixed traffic with random faults, and ${minutesText(told.totalMs - told.talkedMs)} of closing checks. It started on ${told.begun.toISOString().slice(0, 16).replace('T', ' ')} UTC.`,
    `The leases were ${leaseMs / 1_000} s long. All time limits of the checks include ${loadMs / 1_000} s for other load on the machine.`,
    `To repeat the run: \`node test/run.mjs soak --minutes ${told.minutes} --seed ${told.seed} --load ${told.load} --clients ${told.clients} --gaps ${told.gaps} --redis ${told.hasSentinel ? 'sentinel' : 'single'}\`.`,
    '',
    ledger.failures.length === 0
      ? '**The run found no errors.** Every transcript was in order, without gaps or duplicates. Every accepted call got exactly one answer. Each error that a client got has its cause in a fault of the table below. No process, session or connection was left behind.'
      : `**The run found ${ledger.failures.length} errors**, which are listed below.`,
    '',
    '## Traffic',
    '',
    `${rounds.length} rounds of sessions have recorded transcripts. They had ${sumOf(rounds, 'calls')} calls, ${sumOf(rounds, 'connections')} connections and ${sumOf(rounds, 'events')} events for clients. ${sumOf(rounds, 'resumes')} of the connections resumed with \`Last-Event-ID\`.`,
    '',
    serversText,
    '',
    row('Clients', 'Outcomes', 'Longest time without a fault nearby', 'Longest time'),
    row('---', '---', '---:', '---:'),
    ...[...ledger.counts].sort().map(([kind, outcomes]) => {
      const longest = ledger.longestMs.get(kind);
      const all = [longest?.calm, longest?.fault].filter((ms) => ms !== undefined);
      const text = [...outcomes]
        .sort(([, a], [, b]) => b - a)
        .map(([outcome, count]) => `${count} ${outcome.slice(0, 80)}`)
        .join(', ');
      return row(kind, text, msText(longest?.calm), msText(all.length === 0 ? undefined : Math.max(...all)));
    }),
    '',
    '## Faults',
    '',
    row('Fault', 'Count', 'Total duration in seconds'),
    row('---', '---:', '---:'),
    ...allKinds.map((kind) => {
      const seconds = faultsOf(kind).reduce((sum, { beganAt, endedAt }) => sum + endedAt - beganAt, 0) / 1_000;
      return row(faultTexts[kind], faultsOf(kind).length, Math.round(seconds));
    }),
    '',
    ...excusedText(ledger),
    '## Findings',
    '',
    ...(ledger.failures.length === 0
      ? ['None.']
      : ledger.failures
          .slice(0, 100)
          .map(({ atMs, what }) => `- at ${Math.round(atMs / 1_000)} s: ${what.slice(0, 400)}`)),
    '',
    '## Resources',
    '',
    `Growth is the slope of the best-fitting line, without the first ${warmUpMs / 60_000} minutes. Instance 0 is never killed, but is frozen and cut off from Redis like the other instances.`,
    `Of its memory, only the lowest value of each ${windowMs / 60_000} minutes counts, which is what garbage collections leave. Memory grows too much if the growth minus two standard errors is above the limit. For resident memory, this is checked in runs of at least ${leastResidentMs / 60_000} minutes.`,
    `Marks of ended sessions, and keys of sessions and streams that nobody comes back to, live in Redis for an hour. They are not among the needed keys: ${expiringKeys(end)} were there at the end, of ${told.opened} sessions and streams that clients had opened.`,
    '',
    ...growthTable(bounds),
    '',
    row('', 'Before the run', 'After all clients have disconnected'),
    row('---', '---', '---'),
    ...base.gateways.map((used, index) => row(`instance ${index}`, usedText(used), usedText(end.gateways[index]))),
    row('keys in Redis', keysText(base), keysText(end)),
    '',
    `![Resident memory of the gateways](${image})`,
    '',
  ];
  return lines.join('\n');
}

/** What a busy machine explains, and nothing else. */
function excusedText({ excused }: Ledger): readonly string[] {
  const counts = [...excused].sort(([, a], [, b]) => b - a).map(([what, count]) => `${count} ${what}`);
  if (counts.length === 0) return ['The busy machine alone explains none of the outcomes.', ''];
  return [
    'Some outcomes and times have no other cause than the busy machine. It was measured that a gateway, Redis or the test stood still at these times. They do not count as errors: ' +
      `${counts.join('; ')}.`,
    '',
  ];
}

function growthTable(bounds: readonly Bound[]): readonly string[] {
  const fitted = bounds.filter(({ slope }) => slope.points > 1);
  if (fitted.length === 0)
    return [`The run was too short to measure growth: it was not longer than these ${warmUpMs / 60_000} minutes.`];
  return [
    row('Quantity', 'Mean', 'Growth per hour', 'Standard error', 'Limit per hour'),
    row('---', '---:', '---:', '---:', '---:'),
    ...fitted.map(({ name, slope, unit, maxPerHour }) => {
      const { mean, perHour, errorPerHour } = slope;
      const error = Number.isFinite(errorPerHour) ? `${errorPerHour.toFixed(2)} ${unit}` : '–';
      return row(name, `${mean.toFixed(1)} ${unit}`, `${perHour.toFixed(2)} ${unit}`, error, `${maxPerHour} ${unit}`);
    }),
  ];
}

const colours = ['#2563eb', '#d97706', '#059669'];

/** Resident memory of each instance over time; where an instance was started anew its line begins again. */
export function chartOf(samples: readonly Sample[]): string {
  const [width, height, left, bottom] = [900, 300, 50, 30];
  const lastMs = samples.at(-1)?.atMs ?? 1;
  const all = samples.flatMap(({ gateways }) =>
    gateways.flatMap((used) => (used === undefined ? [] : [used.rssBytes])),
  );
  const top = Math.max(...all, 1) * 1.1;
  const x = (atMs: number): string => (left + (atMs / lastMs) * (width - left - 10)).toFixed(1);
  const y = (bytes: number): string => (height - bottom - (bytes / top) * (height - bottom - 10)).toFixed(1);
  const lines = [0, 1, 2].map((instance) => {
    const parts: string[][] = [];
    let pid = 0;
    for (const { atMs, gateways } of samples) {
      const used = gateways[instance];
      if (used === undefined) continue;
      if (used.pid !== pid) parts.push([]);
      pid = used.pid;
      parts.at(-1)?.push(`${x(atMs)},${y(used.rssBytes)}`);
    }
    const drawn = parts.map(
      (points) => `<polyline fill="none" stroke="${colours[instance]}" stroke-width="1" points="${points.join(' ')}"/>`,
    );
    return [
      ...drawn,
      `<text x="${left + 10 + 110 * instance}" y="20" fill="${colours[instance]}">instance ${instance}</text>`,
    ].join('\n');
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const label = `<text x="5" y="${y(part * top)}">${Math.round((part * top) / mib)} MiB</text>`;
    return `${label}<text x="${x(part * lastMs)}" y="${height - 8}">${Math.round((part * lastMs) / 60_000)} min</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width + 40} ${height}" font-family="sans-serif" font-size="11" fill="#666">
<title>Resident memory of the three gateways over time</title>
<rect width="${width + 40}" height="${height}" fill="#fff"/>
${lines.join('\n')}
${ticks.join('\n')}
</svg>
`;
}
