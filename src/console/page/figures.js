import { h, setText } from './dom.js';
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

const sum = (items, member) => items.reduce((total, item) => total + item[member], 0);

/** Returns the item with the highest value, if that is above 0. */
const highest = (items, member) =>
  items.reduce((best, item) => ((item[member] ?? 0) > (best?.[member] ?? 0) ? item : best), undefined);

/** Formats the share of failed calls. */
export const failedShare = ({ calls, failures }) => (calls === 0 ? '–' : percent(failures, calls));

/**
 * The numbers of the instance: is it ready, is it more than usual, does it work, is the gateway or a server slow, what
 * restarted, who is refused, did a client lose its stream, is the store well, does memory grow.
 * @type {Record<string, (snapshot: object) => { value: string, detail: string, mood?: string }>}
 */
const figures = {
  'This instance': ({ instance, instances }) => ({
    value: readinessTexts[instance.readiness] ?? instance.readiness,
    detail: `${instance.name}, version ${instance.version}, up ${wholeSeconds(instance.upMs)}${describeOthers(instances)}`,
    mood: instance.readiness === 'ready' ? 'good' : 'bad',
  }),
  Sessions: ({ instance: { sessions, maxSessions, streams, usual } }) => ({
    value: count(sessions),
    detail: `${usual.sessions === undefined ? 'usual number not known yet' : `usually ${count(usual.sessions)} (last ${duration(usual.sessionsSpanMs)})`}; ${counted(streams, 'stream')}; at most ${count(maxSessions)}`,
  }),
  'Calls per second': ({ instance }) => ({
    value: number(instance.callsPerSecond),
    detail: `${counted(instance.inFlight, 'call')} in flight; average over 5 s`,
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
          : `${worst ? `most: ${worst.tool} of ${worst.name}; ` : ''}${count(instance.failures)} of ${counted(instance.calls, 'call')} in 2 min`,
      mood: instance.isFailing ? 'bad' : '',
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
          : `slowest: ${slowest.name} ${duration(slowest.p95Ms)}${gatewayMs === null ? '' : `; gateway ${milliseconds(gatewayMs)}`}`,
    };
  },
  'Lost processes': ({ servers }) => {
    const most = highest(servers, 'exits');
    return {
      value: count(sum(servers, 'exits')),
      detail: most ? `most: ${most.name}, in 5 min. ${most.lastExit}` : 'nothing restarted in 5 min',
      mood: most ? 'warn' : '',
    };
  },
  'Refused requests': ({ instance: { refusals } }) => ({
    value: count(refusals.count),
    detail: describeRefusals(refusals),
    mood: refusals.count > 0 ? 'warn' : '',
  }),
  'Resumed streams': ({ instance: { resumes } }) => ({
    value: count(resumes.resumed),
    detail: describeResumes(resumes),
    mood: resumes.broken > 0 ? 'bad' : '',
  }),
  Store: ({ instance: { store } }) => {
    const [value, text] = storeTexts[store.kind];
    const detail =
      store.meanMs === undefined
        ? text
        : `${text}; answers in ${milliseconds(store.meanMs)}, at most ${milliseconds(store.longestMs)} in the last minute`;
    return store.isUp
      ? { value, detail }
      : { value: `${value} is unavailable`, detail: 'does not answer', mood: 'bad' };
  },
  Memory: ({ instance: { memoryBytes, childBytes, usual }, servers }) => ({
    value: bytes(memoryBytes + childBytes),
    detail: `${describeGrowth(usual, memoryBytes + childBytes)}; gateway ${bytes(memoryBytes)}, ${counted(sum(servers, 'childCount'), 'process', 'processes')}`,
  }),
};

function describeRefusals({ reasons, last }) {
  if (last === undefined) return 'none since the start';
  const counts = reasons.map(({ reason, count: times }) => `${count(times)} × ${describeReason(reason)}`).join(', ');
  const detail = last.detail === undefined ? describeReason(last.reason) : last.detail;
  return `${counts}${counts && '; '}last at ${time(last.at)} by ${last.server} (${detail})`;
}

/** Says who resumed a stream last, and whether events are missing. */
function describeResumes({ resumed, broken, last, client, user }) {
  if (last === undefined) return 'no client has resumed a stream';
  const who = [user, client && user ? `(${client})` : client].filter(Boolean).join(' ');
  const owner = [who, last.session && `session ${last.session}`].filter(Boolean).join(', ');
  const outcome =
    broken > 0 ? `${count(broken)} with missing events; ` : resumed > 0 ? 'no event lost; ' : 'none in 5 min; ';
  return `${outcome}last at ${time(last.at)} at ${last.server}${owner && `: ${owner}`}`;
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
    return {
      element: h('div', {}, h('dt', {}, name), h('dd', {}, value, detail)),
      update(snapshot) {
        const figure = describe(snapshot);
        setText(value, figure.value);
        value.className = figure.mood ?? '';
        setText(detail, figure.detail);
        detail.title = figure.detail;
      },
    };
  });
  return {
    element: h('dl.figures', {}, ...parts.map(({ element }) => element)),
    update(snapshot) {
      for (const part of parts) part.update(snapshot);
    },
  };
}
