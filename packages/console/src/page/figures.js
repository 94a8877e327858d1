import { h, setParts, setText } from './dom.js';
import { bytes, count, counted, duration, milliseconds, number, percent, time, wholeSeconds } from './formats.js';
import { describeReason } from './reasons.js';

/** The readiness of an instance in words. */
export const readinessTexts = {
  ready: 'Ready',
  degraded: 'Degraded: Redis is unavailable',
  unavailable: 'Not ready',
  draining: 'Draining',
};

/** What each kind of store means for an operator. */
const storeTexts = {
  memory: ['In memory', 'not shared; lost on restart'],
  files: ['In files', 'not shared; kept across a restart'],
  redis: ['Redis', 'connected'],
};

/** Redis is slow if it takes so long on average, or once in the last minute. */
const slowStore = { meanMs: 25, longestMs: 1_000 };

/** Memory grows fast if it grows by so much within the last hour, and by this share of what it is now. */
const fastGrowth = { bytes: 64 * 1_048_576, share: 0.2 };

const isGrowingFast = ({ grownBytes = 0 }, total) =>
  grownBytes >= fastGrowth.bytes && grownBytes >= total * fastGrowth.share;

const sum = (items, member) => items.reduce((total, item) => total + item[member], 0);

/** Returns the item with the highest value, if that is above 0. */
const highest = (items, member) =>
  items.reduce((best, item) => ((item[member] ?? 0) > (best?.[member] ?? 0) ? item : best), undefined);

/** Formats the share of failed calls. */
export const failedShare = ({ calls, failures }) => (calls === 0 ? '–' : percent(failures, calls));

/** Says how the calls of a server ended. */
export function describeOutcome({ calls, failures, left }) {
  if (calls === 0) return 'no calls in 2 min';
  const failed = failures === 0 ? 'none' : failedShare({ calls, failures });
  return `${counted(calls, 'call')} in 2 min, ${failed} failed${left === 0 ? '' : `, ${count(left)} given up by the client`}`;
}

/**
 * The numbers of the instance: is it ready, is it more than usual, does it work, is the gateway or a server slow, what
 * restarted, who is refused, did a client lose its stream, is the store well, does memory grow.
 * Each leads to its details; `detail` may have sessions, which are links.
 * @type {Record<string, (snapshot: object) => { value: string, detail: string | readonly unknown[], mood?: string,
 *   href: string }>}
 */
export const figures = {
  'This instance': ({ instance, instances }) => ({
    value: readinessTexts[instance.readiness] ?? instance.readiness,
    detail: `${instance.name}, version ${instance.version}, up ${wholeSeconds(instance.upMs)}${describeOthers(instances)}`,
    mood: instance.readiness === 'ready' ? 'good' : 'bad',
    href: '#overview/instances',
  }),
  Sessions: ({ instance: { sessions, maxSessions, streams, usual, store }, instances }) => ({
    value: instances.length > 1 ? `${count(sessions)} here` : count(sessions),
    href: '#sessions',
    detail: `${store.waiting === undefined ? '' : `${count(store.waiting)} more in files, not used since the start; `}${instances.length > 1 ? `${count(sum(instances, 'sessions'))} on ${count(instances.length)} instances; ` : ''}${usual.sessions === undefined ? 'usual number not known yet' : `usually ${count(usual.sessions)} (last ${duration(usual.sessionsSpanMs)})`}; ${counted(streams, 'stream')}; at most ${count(maxSessions)}`,
  }),
  'Calls per second': ({ instance }) => ({
    value: number(instance.callsPerSecond),
    detail: `${counted(instance.inFlight, 'call')} in flight; average over 5 s`,
    href: '#overview/charts/calls',
  }),
  'Failed calls': ({ instance, servers }) => {
    const worst = highest(
      servers.map(({ name, failingTool }) => ({ name, tool: failingTool?.name, failures: failingTool?.failures })),
      'failures',
    );
    return {
      value: failedShare(instance),
      detail:
        instance.calls === 0
          ? 'no calls in the last 2 min'
          : `${worst ? `most: ${worst.tool === 'other' ? 'unlisted tools' : worst.tool} of ${worst.name}; ` : ''}${count(instance.failures)} of ${counted(instance.calls, 'call')} in 2 min`,
      mood: instance.isFailing ? 'bad' : '',
      href: worst ? `#overview/servers/${encodeURIComponent(worst.name)}` : '#overview/charts/calls',
    };
  },
  'Response time, p95': ({ instance: { p95Ms, gatewayMs }, servers }) => {
    const slowest = highest(
      servers.map(({ name, recent }) => ({ name, p95Ms: recent.p95Ms })),
      'p95Ms',
    );
    return {
      value: p95Ms === null ? '–' : duration(p95Ms),
      detail:
        p95Ms === null
          ? 'no answer in the last 2 min'
          : `slowest: ${slowest.name} ${duration(slowest.p95Ms)}${gatewayMs === null ? '' : `; gateway ${milliseconds(gatewayMs)}`}; in 2 min`,
      href: '#overview/charts/times',
    };
  },
  'Lost processes': ({ servers }) => {
    const lost = sum(servers, 'exits');
    return {
      value: count(lost),
      detail: lost > 0 ? `in 5 min: ${nameWorst(servers)}` : 'nothing restarted in 5 min',
      mood: lost > 0 ? 'warn' : '',
      href: '#overview/activity/restarts',
    };
  },
  'Refused requests': ({ instance: { refusals } }) => ({
    value: count(refusals.count),
    detail: describeRefusals(refusals),
    mood: refusals.count > 0 ? 'warn' : '',
    href: '#overview/activity/refused',
  }),
  'Resumed streams': ({ instance: { resumes } }) => ({
    value: count(resumes.resumed),
    detail: describeResumes(resumes),
    mood: resumes.broken > 0 ? 'bad' : '',
    href: '#overview/activity/resumed',
  }),
  Store: ({ instance: { store } }) => {
    const [value, text] = storeTexts[store.kind];
    const detail =
      store.meanMs === undefined
        ? text
        : `${text}; answers in ${milliseconds(store.meanMs)}, at most ${milliseconds(store.longestMs)} in the last minute`;
    const href = '#overview/activity/store';
    if (!store.isUp) {
      if (store.kind === 'redis') return { value: `${value} is away`, detail: 'does not answer', mood: 'bad', href };
      return { value: 'Files cannot be written', detail: 'no new sessions; the log has the cause', mood: 'bad', href };
    }
    if (store.kind !== 'redis') return { value, detail, href };
    if (store.unreachable !== undefined) {
      const others = counted(store.unreachable.length, 'instance', 'instances');
      const unreached = `${store.unreachable.join(', ')}: not reached from here, so their sessions are not served here`;
      return { value: `${others} out of reach`, detail: unreached, mood: 'bad', href };
    }
    const isSlow = (store.meanMs ?? 0) >= slowStore.meanMs || (store.longestMs ?? 0) >= slowStore.longestMs;
    return { value: `${value} is ${isSlow ? 'slow' : 'well'}`, detail, mood: isSlow ? 'warn' : 'good', href };
  },
  Memory: ({ instance: { memoryBytes, childBytes, usual }, servers }) => ({
    value: bytes(memoryBytes + childBytes),
    detail: `${describeGrowth(usual, memoryBytes + childBytes)}; gateway ${bytes(memoryBytes)}, ${counted(sum(servers, 'childCount'), 'process', 'processes')}`,
    mood: isGrowingFast(usual, memoryBytes + childBytes) ? 'warn' : '',
    href: '#overview/charts/memory',
  }),
};

/** So many servers are named beside the number of lost processes. */
const maxNamed = 2;

/** Names the servers that were lost most often. */
function nameWorst(servers) {
  const lost = servers.filter(({ exits }) => exits > 0).sort((a, b) => b.exits - a.exits);
  const named = lost.slice(0, maxNamed).map(({ name, exits }) => `${name} ${count(exits)}`);
  const more = lost.length - named.length;
  return `${named.join(', ')}${more > 0 ? `, and ${counted(more, 'more server')}` : ''}`;
}

function describeRefusals({ reasons, last }) {
  if (last === undefined) return 'none since the start';
  const counts = reasons
    .map(({ reason, count: times, servers }) => `${count(times)} × ${describeReason(reason)} at ${servers.join(', ')}`)
    .join('; ');
  const from = last.address === undefined ? '' : ` from ${last.address}`;
  return `${counts === '' ? 'none' : counts} in 5 min. Last at ${time(last.at)}${from} at ${last.server} (${last.detail ?? describeReason(last.reason)})`;
}

/** Says who resumed a stream last, and whether events are missing. */
function describeResumes({ resumed, broken, last, client, user }) {
  if (last === undefined) return 'no client has resumed a stream';
  const who = [user, client && user ? `(${client})` : client].filter(Boolean).join(' ');
  const outcome =
    broken > 0
      ? `${count(broken)} with missing events in 5 min; `
      : resumed > 0
        ? 'no event lost in 5 min; '
        : 'none in 5 min; ';
  const text = `${outcome}last at ${time(last.at)} at ${last.server}${who && `: ${who}`}`;
  return last.session === undefined ? text : [`${text}, session `, { server: last.server, session: last.session }];
}

/** Names another instance; of several, it gives their number. */
function describeOthers(instances) {
  const others = instances.filter(({ isThis }) => !isThis);
  if (others.length === 0) return '';
  const sessions = counted(sum(others, 'sessions'), 'session');
  const name = others.length === 1 ? others[0].name : `${count(others.length)} more instances`;
  const troubled = others.filter(({ readiness }) => readiness !== 'ready');
  const state = troubled.length === 0 ? 'ready' : `${count(troubled.length)} not ready`;
  return `; ${name}: ${state}, ${sessions}`;
}

/** Changes below this share of the memory are noise. */
const steadyShare = 0.05;

function describeGrowth({ grownBytes, grownSpanMs, mostGrown }, total) {
  if (grownBytes === undefined) return 'growth not known yet';
  const span = duration(grownSpanMs);
  if (Math.abs(grownBytes) < total * steadyShare) return `steady for ${span}`;
  const most = mostGrown && grownBytes > 0 ? `, most: ${mostGrown.name} +${bytes(mostGrown.bytes)}` : '';
  return `${grownBytes > 0 ? '+' : '−'}${bytes(Math.abs(grownBytes))} in ${span}${most}`;
}

/** Creates the numbers of the instance. */
export function createFigures() {
  const parts = Object.entries(figures).map(([name, describe]) => {
    const value = h('strong');
    const detail = h('span.muted');
    const link = h('a', {}, name);
    const setValue = (text, mood = '') => {
      setText(value, text);
      value.className = mood;
    };
    return {
      setValue,
      element: h('div', {}, h('dt', {}, link), h('dd', {}, value, detail)),
      update(snapshot) {
        const figure = describe(snapshot);
        setValue(figure.value, figure.mood);
        setParts(detail, [figure.detail].flat());
        detail.title = detail.textContent;
        if (link.hash !== figure.href) link.href = figure.href;
      },
    };
  });
  return {
    element: h('dl.figures', {}, ...parts.map(({ element }) => element)),
    /** Says in place of the readiness that nobody knows it, until the next state. */
    setLost(text, mood) {
      parts[0].setValue(text, mood);
    },
    update(snapshot) {
      for (const part of parts) part.update(snapshot);
    },
  };
}
