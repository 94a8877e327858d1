// Which scenario says something about which target. Each rule says what is left out, and why.

const isModern = ({ era }) => era === 'modern';
const opensSessions = ({ kind }) => kind === 'sessions' || kind === 'session-calls' || kind === 'idle';

export const rules = [
  {
    why: 'A target that was made for one comparison runs that one.',
    leavesOut: ({ only }, scenario) => only !== undefined && !only(scenario),
  },
  {
    why: 'Sessions that hibernate are those of the target that lets them.',
    leavesOut: ({ only }, { hibernates }) => hibernates === true && only === undefined,
  },
  {
    why: 'What translation costs is seen with clients of the other era: -translated has those of 2026-07-28, -on-modern those before.',
    leavesOut: ({ server }, scenario) =>
      (server === 'legacy' && !isModern(scenario)) || (server === 'modern' && isModern(scenario)),
  },
  {
    why: 'A server on HTTP+SSE is of the legacy era: clients of 2026-07-28 meet it in -sse-translated alone.',
    leavesOut: ({ isOurs, transport, server }, scenario) =>
      isOurs && transport === 'sse' && server === 'same' && isModern(scenario),
  },
  {
    why: 'Of clients of 2026-07-28 and a server of their era, nothing is in Redis: that is measured once, without.',
    leavesOut: ({ usesRedis, isOurs, server }, scenario) =>
      isOurs && usesRedis && server === 'same' && isModern(scenario),
  },
  {
    why: 'What a client declares makes a difference in front of a server of the legacy era.',
    leavesOut: ({ isOurs, server }, { declares }) =>
      declares !== undefined && declares.extensions === undefined && isOurs && server !== 'legacy',
  },
  {
    why: 'What it costs to declare tasks is seen in one place.',
    leavesOut: ({ name, only }, { declares }) =>
      declares?.extensions !== undefined && name !== 'ours' && name !== 'before' && only === undefined,
  },
  {
    why: 'Peers know no client of 2026-07-28.',
    leavesOut: ({ isPeer }, scenario) => isPeer && isModern(scenario),
  },
  {
    why: 'The start is that of one process in front of a STDIO server; what it knows of its era changes nothing.',
    leavesOut: ({ transport, instances, server }, { kind }) =>
      kind === 'start' && (transport !== 'stdio' || instances > 1 || (server !== undefined && server !== 'same')),
  },
  {
    why: 'Sessions of a server that runs by itself, or of a modern one, have no process: how they open and what they hold is not compared with those that do.',
    leavesOut: ({ transport, server }, scenario) =>
      opensSessions(scenario) && (transport !== 'stdio' || server === 'modern'),
  },
];

/** Whether the cell of these two is measured. */
export const makesSense = (target, scenario) => !rules.some(({ leavesOut }) => leavesOut(target, scenario));
