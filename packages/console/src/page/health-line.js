import { h, setParts, setText } from './dom.js';
import { figures, readinessTexts } from './figures.js';
import { bytes, count, counted, duration, number, percent } from './formats.js';

/** So many servers in trouble are named in the line. */
const maxNamed = 3;

/** The states of servers that are trouble, worst first, with their colours. */
const troubles = { down: 'bad', degraded: 'warn', slow: 'warn' };

/** Says which servers are in a state: `mail and files are down. `, with links to their rows. */
function describeServers(servers, state) {
  const names = servers.filter(({ condition }) => condition.state === state).map(({ name }) => name);
  if (names.length === 0) return [];
  const mood = troubles[state];
  const more = names.length - maxNamed;
  const named = names
    .slice(0, maxNamed)
    .flatMap((name, index) => [
      ...(index === 0 ? [] : [index === names.length - 1 ? ' and ' : ', ']),
      { href: `#overview/servers/${encodeURIComponent(name)}`, text: name, mood },
    ]);
  const verb = names.length === 1 ? 'is' : 'are';
  return [...named, { text: `${more > 0 ? ` and ${count(more)} more` : ''} ${verb} ${state}. `, mood }];
}

/**
 * Says in one line whether the gateway and its servers are well, and what is not. The worst comes first.
 * @returns {{ mood: string, parts: readonly unknown[] }} the parts are texts and links
 */
export function describeHealth(snapshot) {
  const { instance, servers } = snapshot;
  const store = figures.Store(snapshot);
  const ofInstance =
    instance.readiness === 'ready'
      ? []
      : [{ text: `${readinessTexts[instance.readiness] ?? instance.readiness}. `, mood: 'bad' }];
  const ofStore = { href: store.href, text: `${store.value}. `, mood: store.mood };
  const parts = [
    ...ofInstance,
    ...(store.mood === 'bad' ? [ofStore] : []),
    ...Object.keys(troubles).flatMap((state) => describeServers(servers, state)),
    ...(store.mood === 'warn' ? [ofStore] : []),
  ];
  if (parts.length > 0) return { mood: parts.some(({ mood }) => mood === 'bad') ? 'bad' : 'warn', parts };
  const unused = servers.filter(({ condition }) => condition.state === 'unused').length;
  const up = servers.length - unused;
  if (up === 0) return { mood: 'good', parts: [`Ready. ${counted(unused, 'server')}, not used yet.`] };
  const rest = unused === 0 ? '' : `, ${count(unused)} not used yet`;
  return { mood: 'good', parts: [`All is well. ${counted(up, 'server')} up${rest}.`] };
}

/** The numbers beside the line, each with a link to what it is about. */
export function describeNumbers({ instance, instances, servers, tasks }) {
  const { callsPerSecond, calls, failures, p95Ms, memoryBytes, childBytes, isFailing, refusals, resumes } = instance;
  const sessions = instances.reduce((sum, each) => sum + each.sessions, 0);
  const link = (href, text, mood) => ({ href, text, mood });
  return [
    link('#sessions', counted(sessions, 'session')),
    ...(tasks.total === 0 ? [] : [link('#sessions', counted(tasks.total, 'task'))]),
    link('#overview/charts/calls', `${number(callsPerSecond)} calls/s`),
    link('#errors', calls === 0 ? 'no calls in 2 min' : `${percent(failures, calls)} failed`, isFailing ? 'bad' : ''),
    ...(refusals.count === 0 ? [] : [link('#overview/activity/refused', `${count(refusals.count)} refused`, 'warn')]),
    ...(resumes.broken === 0
      ? []
      : [link('#overview/activity/resumed', `${counted(resumes.broken, 'stream')} with missing events`, 'bad')]),
    ...(p95Ms === null ? [] : [link('#overview/charts/times', `p95 ${duration(p95Ms)}`)]),
    link('#overview/charts/memory', bytes(memoryBytes + childBytes)),
    ...(instances.length === 1 ? [] : [link('#overview/instances', counted(instances.length, 'instance'))]),
    ...(servers.length === 0 ? [] : [link('#overview/figures', 'more')]),
  ];
}

/** Creates the line on top of the overview: is all well, and if not, what is wrong. */
export function createHealthLine() {
  const dot = h('span.dot', { 'aria-hidden': 'true' });
  const text = h('strong');
  const numbers = h('p.numbers.muted');
  return {
    element: h('div.health', {}, h('p.state', { role: 'status' }, dot, text), numbers),
    /** Says that nobody knows. The next state replaces it. */
    setLost(message, mood) {
      dot.className = `dot ${mood}`;
      text.className = mood;
      setParts(text, []);
      setText(text, message);
    },
    update(snapshot) {
      const { mood, parts } = describeHealth(snapshot);
      dot.className = `dot ${mood}`;
      text.className = '';
      setParts(text, parts);
      setParts(
        numbers,
        describeNumbers(snapshot).flatMap((part, index) => (index === 0 ? [part] : [' · ', part])),
      );
    },
  };
}
