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
    why: 'More sessions than a gateway takes by default are those of the target that takes them, and of the ideal.',
    leavesOut: ({ only, name }, { isMany }) => isMany === true && only === undefined && name !== 'ideal',
  },
  {
    why: 'What translation costs is seen with clients of the other era: -translated has those of 2026-07-28, -on-modern those before.',
    leavesOut: ({ server }, scenario) =>
      (server === 'legacy' && !isModern(scenario)) || (server === 'modern' && isModern(scenario)),
  },
  {
    why: 'Of clients of 2026-07-28, nothing is in Redis.',
    leavesOut: ({ usesRedis, isOurs }, scenario) => isOurs && usesRedis && isModern(scenario),
  },
  {
    why: 'What it costs to declare tasks is seen in one place.',
    leavesOut: ({ name, only }, { declares }) =>
      declares !== undefined && name !== 'ours' && name !== 'before' && only === undefined,
  },
  {
    why: 'Peers know no client of 2026-07-28.',
    leavesOut: ({ isPeer }, scenario) => isPeer && isModern(scenario),
  },
  {
    why: 'The start is that of one process in front of a STDIO server; what it knows of its era changes nothing.',
    leavesOut: ({ isRemote, server }, { kind }) =>
      kind === 'start' && (isRemote || (server !== undefined && server !== 'same')),
  },
  {
    why: 'Sessions of a server that runs by itself, or of a modern one, have no process: how they open and what they hold is not compared with those that do.',
    leavesOut: ({ isRemote, server }, scenario) => opensSessions(scenario) && (isRemote || server === 'modern'),
  },
];

/** Whether the cell of these two is measured. */
export const makesSense = (target, scenario) => !rules.some(({ leavesOut }) => leavesOut(target, scenario));
