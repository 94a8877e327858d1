// node test/run.mjs [NAME [arguments]]
//
// The runs that are too long for each change, or that need a quiet machine or more programs. Without a name, lists them.
// Arguments go to the program of the run: to vitest, if nothing else is said. A variable of the environment
// replaces that of the run. test/README.md explains more variables.
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const build = 'scripts/build.mjs';
const vitest = ['node_modules/vitest/vitest.mjs', 'run'];
const withConfig = (room) => [...vitest, '--config', `test/${room}/vitest.config.ts`];
const stryker = ['node_modules/@stryker-mutator/core/bin/stryker.js', 'run', 'test/mutation/stryker.config.json'];
const soak = ['test/soak/soak.mjs'];
/** A test or report writes what it is told, as it comes. */
const unchanged = '--disable-console-intercept';

/** Each run: a sentence about it, what it starts, whether that needs a build, and its variables. */
export const runs = {
  long: {
    what: 'All tests that npm test leaves out, in 40 minutes; a job runs them each week.',
    needsBuild: true,
    command: [...vitest, '--project', 'long'],
  },
  faults: {
    what: 'The same, with the faults of docs/hardening.md in full size.',
    needsBuild: true,
    command: [...vitest, '--project', 'long'],
    env: { FAULT_FULL: '1', FAULT_SIZE: 'full' },
  },
  kills: {
    what: 'A random instance is killed 1,000 times under load.',
    needsBuild: true,
    command: [...vitest, 'test/cluster/kill-random.test.ts'],
    env: { KILL_RUNS: '1000' },
  },
  tasks: {
    what: '10,000 calls become tasks, while instances are killed and drained and Redis restarts, in a quarter of an hour.',
    needsBuild: true,
    command: [...vitest, 'test/cluster/tasks-random.test.ts'],
    env: { TASKS: '10000' },
  },
  'store-kills': {
    what: 'A single instance with its store in files is killed 200 times, and restarts with 100 sessions; its files lose a bit 1,000 times.',
    needsBuild: true,
    command: [
      ...vitest,
      'test/integration/store',
      'test/features/files/kills.test.ts',
      'test/features/files/damage.test.ts',
    ],
    env: { KILL_RUNS: '200', STORE_SESSIONS: '100', FLIPS: '500' },
  },
  cuts: {
    what: 'Streams are cut at a random byte and resumed 100,000 times.',
    needsBuild: true,
    command: [...vitest, 'test/resume', 'test/cluster/random-cuts.test.ts'],
    env: { RESUME_RUNS: '100000' },
  },
  features: {
    what: 'Each feature is deleted: types and imports must hold; without all of them, the tests of the core must pass.',
    command: ['scripts/delete-features.mjs'],
  },
  refusals: {
    what: "Clients' answers in faults are compared with servers' journals, 200 times.",
    needsBuild: true,
    command: [...vitest, 'test/cluster/refusals.test.ts'],
    env: { REFUSAL_RUNS: '200' },
  },
  sessions: {
    what: '200 sessions begin and end, and leave no child.',
    needsBuild: true,
    command: [...vitest, 'test/integration/lifecycle.test.ts'],
    env: { SESSION_WAVES: '10' },
  },
  calls: {
    what: '10,000 calls at once of two sessions, of hosted clients and of sessions that share a process; 1,000 modern clients.',
    needsBuild: true,
    command: [
      ...vitest,
      'test/integration/attribution.test.ts',
      'test/integration/hosted-clients.test.ts',
      'test/integration/shared-processes.test.ts',
      'test/integration/modern-clients.test.ts',
      'test/cluster/modern.test.ts',
    ],
    env: { ATTRIBUTED_CALLS: '10000', HOSTED_CALLS: '10000', SHARED_CALLS: '10000', CROWD: '1000' },
  },
  stalls: {
    what: 'Ten peers send expensive input at once, and /healthz answers within 100 ms. Needs a quiet machine.',
    needsBuild: true,
    command: [...vitest, 'test/hardening/stalls.test.ts'],
    env: { STALL_STRICT: '1' },
  },
  many: {
    what: '/healthz answers beside 5,000 open streams and 1 GB of output. Needs a quiet machine.',
    needsBuild: true,
    command: withConfig('many'),
  },
  floods: {
    what: 'Hostile servers and clients flood a gateway with 512 MiB of memory, over each transport, in 15 minutes.',
    needsBuild: true,
    command: [...withConfig('floods'), unchanged],
  },
  'redis-failures': {
    what: 'A real Redis fails under load, and what is lost is counted, in 4 minutes.',
    needsBuild: true,
    command: withConfig('redis-failures'),
  },
  soak: {
    what: 'Three gateways under mixed traffic and random faults, for hours. --help lists its arguments.',
    needsBuild: true,
    command: soak,
  },
  chaos: {
    what: 'A soak of 10 minutes with 48 recorded sessions, whose faults meet each other.',
    needsBuild: true,
    command: [...soak, '--minutes', '10', '--clients', '48', '--gaps', '0.3'],
  },
  simulate: {
    what: 'Several gateways run on one virtual clock, with a fault at any step.',
    command: [...withConfig('simulation'), '--project', 'simulation'],
  },
  'simulate-mutants': {
    what: 'The simulation has to find each of its deliberate errors.',
    command: [...withConfig('simulation'), '--project', 'mutant*'],
  },
  fuzz: {
    what: 'A million generated inputs for every reader.',
    command: [...vitest, '--project', 'fuzz', unchanged],
    env: { FUZZ_CASES: '1000000' },
  },
  'fuzz-coverage': {
    what: 'The same readers, guided by the code that a case reaches. Needs glibc 2.38 or newer.',
    command: ['test/fuzz/guided/run.mjs'],
  },
  coverage: {
    what: 'The lines and branches that the tests of the rooms without sockets reach.',
    command: [...withConfig('mutation'), '--coverage'],
  },
  mutants: {
    what: 'Deliberate errors in these rooms, which their tests have to find. Arguments go to Stryker.',
    command: stryker,
  },
  judges: {
    what: 'Suites, clients and servers of other authors and languages judge the gateway, in 90 minutes. Installs them.',
    needsBuild: true,
    command: withConfig('judges'),
  },
  page: {
    what: 'The status page in a real Chromium. Needs Chromium.',
    needsBuild: true,
    command: [...vitest, 'test/page'],
  },
  chart: {
    what: 'The Helm chart, rendered by helm. Installs helm, for Linux on x64.',
    command: withConfig('chart'),
  },
  docker: {
    what: 'The image, the recipes and the examples. Needs a Docker engine.',
    needsBuild: true,
    command: withConfig('docker'),
  },
  prometheus: {
    what: 'Prometheus scrapes gateways, and alerts fire. Needs prometheus and promtool.',
    needsBuild: true,
    command: withConfig('prometheus'),
  },
};

function list() {
  const width = Math.max(...Object.keys(runs).map((name) => name.length));
  const lines = Object.entries(runs).map(([name, { what }]) => `  ${name.padEnd(width)}  ${what}\n`);
  return `node test/run.mjs NAME [arguments]\n\n${lines.join('')}`;
}

function end(code, text) {
  process.stderr.write(text);
  process.exit(code);
}

function start(name, args) {
  if (!Object.hasOwn(runs, name)) end(1, `There is no run "${name}".\n\n${list()}`);
  const { command, needsBuild, env } = runs[name];
  if (needsBuild && spawnSync(process.execPath, [build], { cwd: root, stdio: 'inherit' }).status !== 0)
    end(1, 'The build has failed.\n');
  const [program, ...own] = command;
  const child = spawn(process.execPath, [join(root, program), ...own, ...args], {
    cwd: root,
    env: { ...env, ...process.env },
    stdio: 'inherit',
  });
  // Ctrl+C reaches the run too, which stops what it has started. A signal from elsewhere is passed on.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => child.kill());
  child.once('close', (code) => {
    process.exitCode = code ?? 1;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, ...args] = process.argv.slice(2);
  if (name === undefined) process.stdout.write(list());
  else start(name, args);
}
