import { count, counted } from './formats.js';

/** Says what happens to the sessions of this instance when it drains. */
export function describeDrain({ instance: { name, sessions, oneStream, store }, instances }) {
  const others = instances.filter(({ isThis, readiness }) => !isThis && readiness === 'ready').length;
  const whose =
    sessions === 0 ? '' : ` ${describeFate(sessions, store, others)}${describeOneStream(sessions, oneStream, store)}`;
  return `${name} accepts no new sessions, finishes requests in flight, and exits.${whose} This page then stops working.`;
}

function describeFate(sessions, { kind, isUp, directory }, others) {
  const them = counted(sessions, 'session');
  const are = sessions === 1 ? 'is' : 'are';
  if (kind !== 'memory' && !isUp) return `The store does not answer, so its ${them} may be lost.`;
  if (others > 0) return `Its ${them} ${sessions === 1 ? 'goes' : 'go'} to ${counted(others, 'other instance')}.`;
  if (kind === 'redis') return `There is no other instance. Its ${them} ${are} kept in Redis until one starts.`;
  if (kind === 'files') return `Its ${them} ${are} kept in ${directory} until the gateway starts again.`;
  return sessions === 1
    ? 'There is no other instance. Its session ends, and its client opens a new one.'
    : `There is no other instance. Its ${them} end, and their clients open new ones.`;
}

/** The official clients over WebSocket and HTTP+SSE cannot resume a connection. */
function describeOneStream(sessions, oneStream, { kind }) {
  if (oneStream === 0 || kind === 'memory') return '';
  const whose =
    oneStream === sessions
      ? sessions === 1
        ? 'Its client uses'
        : 'Their clients use'
      : `${count(oneStream)} of them ${oneStream === 1 ? 'uses' : 'use'}`;
  return ` ${whose} WebSocket or HTTP+SSE, where a client opens a new session after a lost connection.`;
}
