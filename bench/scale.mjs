// node bench/scale.mjs [--sessions 100000] [--events 1000000] [--instances 4] [--masters 1]
//
// What many sessions cost Redis and the gateways that share it: sessions, their events, lookups, resumes, renewals, takeovers and
// ends, by the gateway's own store (dist/redis-store.js; `npm run build` first), as so many instances would ask for them. Starts
// a redis-server of its own, or a cluster of so many masters (redis-server and redis-cli must be on the PATH), in memory only.
// What is read back is checked for gaps, order and content; anything wrong ends the run with an error. Prints the tables of
// docs/scaling.md. Nothing of a gateway but its store runs here, all instances in one process: what clients, sessions and server
// processes cost is measured by bench.mjs.
import { readCommand, requireBuild, requireRedis, UsageError } from './lib/command.mjs';
import { startFleet, width } from './scale/fleet.mjs';
import { seen, storeProgram } from './scale/instances.mjs';
import { costOf, heldBytesOf, longestBlockOf } from './scale/measure.mjs';
import { startRedisNodes } from './scale/redis-nodes.mjs';
import { costHeads, costRow, count, inWords, mib, millis, print, printTable } from './scale/report.mjs';
import { usageOf } from './scale/usage.mjs';

const { values } = readCommand(import.meta, {
  sessions: { type: 'number', least: 100 },
  events: { type: 'number' },
  instances: { type: 'number', least: 2 },
  masters: { type: 'number' },
});
const { sessions = 100_000, events = 1_000_000, instances = 4, masters = 1 } = values;
if (masters === 2)
  throw new UsageError('--masters is 1, or 3 and more for a cluster, and not 2: Redis refuses such a cluster');
requireBuild(storeProgram);
requireRedis('redis-server', 'redis-cli');
const eventsEach = Math.max(2, Math.round(events / sessions));

/** Operations for a percentile of one at a time. */
const samples = Math.min(2_000, sessions);

/** As many sessions as an instance registers at once; see src/features/cluster/ownership/registration.ts. */
const registeredAtOnce = 50;

/** Records of others' sessions that an instance remembers; see src/features/cluster/ownership/directory.ts. */
const remembered = 10_000;

/** Sessions of a lost instance that others take over. */
const takenOver = 5_000;

const redis = await startRedisNodes(masters);
try {
  const fleet = await startFleet(redis.url, instances, eventsEach);
  seen.failed = 0; // those before there was a connection
  const empty = await usageOf(redis.nodes);
  const where = masters === 1 ? 'one server' : `a cluster of ${masters} masters`;
  print(`Redis ${empty.version}, ${where}; ${instances} instances; Node.js ${process.version}.`);

  const opened = await measureSizes(fleet);
  const held = await heldBytesOf(() => fleet.records(Math.min(remembered, sessions)));
  const events = await measureEvents(fleet);
  const full = await usageOf(redis.nodes);
  const renewals = await measureRenewals(fleet);
  if (seen.failed > 0 || seen.lost > 0)
    print(`\nCommands that failed: ${seen.failed}; leases lost: ${seen.lost}. This machine is too slow for the run.`);
  const ends = await measureEnds(fleet);

  print(`\nWhat each costs, with ${width} under way:\n`);
  printTable(costHeads, [opened, ...events.rows, renewals.row, ...ends]);
  print('\nMemory:\n');
  print(`- of Redis for each of ${eventsEach} events of about 200 bytes, with what their log has besides:`);
  print(
    `  ${count(events.bytesOfOne)} bytes where they came one at a time, ${count(events.bytesOfBatched)} where at once`,
  );
  print(
    `- of Redis for ${count(sessions)} sessions and their events: ${mib(full.memoryBytes - empty.memoryBytes)} used,`,
  );
  print(`  ${mib(full.residentBytes - empty.residentBytes)} resident`);
  print(`- of a gateway for the record of another one's session that it remembers: ${count(held)} bytes`);
  print('\nRenewals, a thirtieth of the sessions of an instance at once, as it does every 30 s:\n');
  print(`- each took ${inWords(renewals.times)} ms, the longest block of the process ${millis(renewals.blockedMs)}`);
  print(
    `- an append took ${inWords(renewals.calm)} ms before, and ${inWords(renewals.meanwhile)} ms while one followed`,
  );
  print('  the other (p50 / p99)');
  await fleet.close();
} finally {
  await redis.stop();
}

/** Opens sessions, and looks at some sizes how long things take that are done one at a time. */
async function measureSizes(fleet) {
  const sizes = [sessions / 100, sessions / 10, sessions].map((size) => Math.ceil(size));
  const rows = [];
  let row;
  for (const size of sizes) {
    const more = size - fleet.sessions;
    const cost = await costOf(redis.nodes, () => fleet.openUntil(size));
    row = costRow('Session opened', more, cost, cost.result);
    const looked = await fleet.look(samples, 1);
    const appended = await fleet.appendOneByOne(samples);
    const { times: resumed } = await fleet.resume(samples, 1);
    rows.push([count(size), ...[looked, appended, resumed].map(inWords), `${count(cost.memoryBytes / more)} bytes`]);
  }
  print('\nOne at a time, by the number of sessions (p50 / p99, in milliseconds):\n');
  printTable(['Sessions', 'Lookup', 'Append of an event', 'Resume', 'Redis memory for one session'], rows);
  return row;
}

/** Appends all events that are missing, half of the sessions' one at a time, and looks at what is there. */
async function measureEvents(fleet) {
  const half = Math.floor(sessions / 2);
  const lookUps = samples * 5;
  const resumes = Math.ceil(sessions / 10);
  const { nodes } = redis;
  const single = await costOf(nodes, () => fleet.appendRest(0, half, 1));
  const batched = await costOf(nodes, () => fleet.appendRest(half, sessions, eventsEach));
  const looked = await costOf(nodes, () => fleet.look(lookUps, width));
  const resumed = await costOf(nodes, () => fleet.resume(resumes, width));
  return {
    bytesOfOne: single.memoryBytes / single.result.events,
    bytesOfBatched: batched.memoryBytes / batched.result.events,
    rows: [
      costRow('Event appended, one at a time', single.result.events, single, single.result.times),
      costRow(`Event appended, ${eventsEach} at once`, batched.result.events, batched, batched.result.times),
      costRow('Session looked up', lookUps, looked, looked.result),
      costRow(`Stream of up to ${eventsEach} events resumed`, resumes, resumed, resumed.result.times),
    ],
  };
}

/** Renews all sessions, and looks how long an append takes meanwhile. */
async function measureRenewals(fleet) {
  await fleet.openUntil(sessions + samples); // whose streams have no event yet
  const calm = await fleet.appendOneByOne(samples);
  let isOver = false;
  const renewAll = async () => {
    const times = await fleet.renew();
    isOver = true;
    return times;
  };
  const renewing = longestBlockOf(() => costOf(redis.nodes, renewAll));
  const meanwhile = await fleet.appendOneByOne(Number.POSITIVE_INFINITY, () => isOver);
  const { result: cost, blockedMs } = await renewing;
  const row = costRow('Session renewed (four times an hour)', fleet.sessions, cost);
  return { row, times: cost.result, calm, meanwhile, blockedMs };
}

/** One instance is lost, then all data, then the sessions end. */
async function measureEnds(fleet) {
  const lost = await costOf(redis.nodes, () => fleet.loseOne(takenOver));
  await redis.empty();
  const registered = await costOf(redis.nodes, () => fleet.registerAll(registeredAtOnce));
  const ended = await costOf(redis.nodes, () => fleet.endAll());
  return [
    costRow('Session taken over from a lost instance', lost.result.length, lost, lost.result),
    costRow('Session registered in an empty Redis', fleet.sessions, registered),
    costRow('Session ended', fleet.sessions, ended, ended.result),
  ];
}
