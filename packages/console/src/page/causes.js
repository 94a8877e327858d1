// Why a server does not work, for its row and for the playground.

import { h, setText } from './dom.js';

/** The states of a server that a person should act on. */
const isTroubled = ({ condition }) => condition.state === 'down' || condition.state === 'degraded';

/** Says why the server is in trouble; nothing if it works. */
export function describeReason({ condition, health, lastExit }) {
  if (condition.state !== 'down') return condition.reasons.join(' ');
  // A view has no cause of its own.
  const why = health.why ?? (condition.reasons.join(' ') || 'The last probe failed.');
  return lastExit === undefined || why.includes(lastExit) ? why : `${why} ${lastExit}`;
}

/** So many lines that a server wrote are shown in its row. */
const maxSaid = 2;

/** Lines with marks only, which point at a part of the line above. */
const isMark = (line) => /^[\s^~]*$/.test(line);

/**
 * Returns the last lines of a server in trouble before it was lost: the last one alone often names no cause. What a
 * server writes while it works is no cause.
 */
export function describeOutput(server) {
  if (!isTroubled(server)) return '';
  const { lastWords, stderr, noise, health } = server;
  const last = [lastWords, health.output ?? [], stderr.slice(-1).map(({ line }) => line), noise.slice(-1)];
  const lines = last.map((each) => each.filter((line) => !isMark(line))).find((each) => each.length > 0) ?? [];
  return lines.slice(-maxSaid).join('\n');
}

/** What may help the operator of a server in trouble. */
export function describeHelp({ condition, health, exits, isFailing, noise, transport }) {
  if (condition.state === 'down') return health.help ?? '';
  if (condition.state !== 'degraded') return '';
  const isProcess = transport === 'stdio';
  return [
    ...(exits > 0
      ? [
          `Sessions go on with another ${isProcess ? 'process' : 'connection'}. If it is lost again, ${isProcess ? 'the last lines of stderr' : "the server's own log"} may say why.`,
        ]
      : []),
    ...(isFailing ? ['Errors lists the failed calls with their causes.'] : []),
    ...(noise.length > 0 ? ['A server may write only MCP messages to stdout. Let it write its log to stderr.'] : []),
  ].join(' ');
}

/** Creates a block that says why a server does not work, with a link to its row. It is hidden while the server works. */
export function createCause() {
  const why = h('p.bad');
  const said = h('pre', { 'aria-label': 'Last lines of the server' });
  const help = h('p');
  const link = h('a', {}, 'Show the server on the overview');
  const element = h('div.card.cause', { hidden: true }, why, said, help, h('p', {}, link));
  return {
    element,
    /** @returns {boolean} false if nothing is known to be wrong with the server */
    update(server) {
      const isShown = server !== undefined && isTroubled(server);
      element.hidden = !isShown;
      if (!isShown) return false;
      setText(why, `${server.name}: ${describeReason(server)}`);
      setText(said, describeOutput(server));
      said.hidden = said.textContent === '';
      setText(help, describeHelp(server));
      help.hidden = help.textContent === '';
      link.href = `#overview/servers/${encodeURIComponent(server.name)}`;
      return true;
    },
  };
}
