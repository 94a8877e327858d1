import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { ownPackages } from './test/support/own-packages.ts';

/** Far longer than any test takes. What hangs is found all the same, and a busy machine makes no test fail. */
const patient = { testTimeout: 60_000, hookTimeout: 60_000 };

/**
 * Runs with a command of their own (`node test/run.mjs long`), which a job runs each week, since `npm test` must end within 12
 * minutes on two cores. Shorter tests look at the same things, in fewer combinations, sizes or orders of events. Tests that
 * measure memory, latencies or commands, or keep many sessions at work, are here too: other tests at the same time would
 * change what they measure.
 */
const long = [
  'test/bench/{bench,command,peers}.test.ts',
  'test/cluster/{affinity,commands,everything,flow,refusals,remote-takeover,rolling-restart}.test.ts',
  'test/cluster/fault-{failover,full,link,owner,redis,redis-net,stall,storm}.test.ts',
  'test/cluster/{kill-matrix,kill-random,tasks-random}.test.ts',
  'test/conformance/{tasks,translated,views}.test.ts',
  'test/contract/contract-on-many-redis.test.ts',
  'test/features/files/disk-room.test.ts',
  'test/fault/{floods,slow-readers}.test.ts',
  'test/hardening/{container,hostile-servers,operator-secrets,stalls,tables-many}.test.ts',
  'test/model/ownership-full.test.ts',
  'test/integration/{cross,exchange-many-users,groups-many,haproxy,large-answers-many,metrics-many,package-cold,package-versions,provider-logins,remote-restart,session-per-call-rate,views-cross}.test.ts',
  'test/page/{cluster,many-streams,snippets}.test.ts',
  'test/page/events/*.test.ts',
  'test/page/actions/every-size.test.ts',
];

/** A browser draws the page with the processor alone, which takes seconds for each step beside other tests. */
const drawing = { testTimeout: 240_000, hookTimeout: 240_000 };

/** The folders of `src`, and what else needs no built gateway. */
const units = [
  'packages/*/test/**/*.test.ts',
  'test/{core,features,config,app,across,multiplex}/**/*.test.ts',
  'test/{contract,requirements,model,support,deploy}/**/*.test.ts',
  'test/soak/{at-rest,ledger,plan,report,slope,stream-watch,talker}.test.ts',
  'test/judges/judge.test.ts',
  'test/simulation/simulation.test.ts',
];

/** They look at the signals and children of their own process, or replace a module that others have loaded. */
const alone = ['test/core/backend/stdio/**/*.test.ts', 'test/features/files/sync.test.ts'];

/** Those of them that start processes: programs, or Redis. The others fail if they start one. */
const processes = [
  'test/app/{v8-flags,addresses/public-base-url,commands/completion}.test.ts',
  'test/across/{hostile-texts,odd-answers}.test.ts',
  ...alone,
  'test/features/{remote/sse/tls,remote/socket/socket-backend,websocket/backend/tls}.test.ts',
  'test/contract/{file,redis*}.test.ts',
  'test/deploy/{kubernetes,systemd,workflows}.test.ts',
  'test/core/ops/{line-file,health/start-help}.test.ts',
  'test/core/protocol/regular-expressions.test.ts',
  'test/features/files/{damage,directory,kills,sync}.test.ts',
  'test/support/{canaries,cluster,journal,log-checker,measures,net-proxy,redis-server,run}.test.ts',
];

/** Files that replace modules, or register tracing, which a process does once. Each needs a process of its own. */
const mocking = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((name) => `test/${name}`)
  .filter(
    (name) =>
      name.endsWith('.test.ts') && /\bvi\.(?:doM|m)ock\(|(?:load|find)-tracing\.ts'/.test(readFileSync(name, 'utf8')),
  );

/**
 * GitHub's parser of workflows imports JSON in a way that bundlers know and Node.js does not; and it names maps of
 * sources that it does not bring, with a warning for each.
 */
const workflowParser = /@actions\/workflow-parser\//;
const withoutMaps = {
  name: 'without-maps',
  load: (id: string) =>
    workflowParser.test(id) && id.endsWith('.js')
      ? readFileSync(id, 'utf8').replace(/^\/\/# sourceMappingURL.*/m, '')
      : null,
};

const projects: TestProjectInlineConfiguration[] = [
  { test: { name: 'imports', include: ['test/{imports,pages,style}.test.ts'], ...patient } },
  {
    test: {
      name: 'unit',
      include: units,
      exclude: [...configDefaults.exclude, ...processes, ...mocking, ...long],
      // Files share a process, since loading all modules anew for each file costs as much as the tests.
      isolate: false,
      setupFiles: 'test/support/no-processes.ts',
      ...patient,
    },
  },
  {
    test: {
      name: 'mocked',
      include: mocking,
      exclude: [...configDefaults.exclude, ...processes, 'test/fuzz/**', 'test/simulation/mutant.test.ts'],
      setupFiles: 'test/support/no-processes.ts',
      ...patient,
    },
  },
  {
    test: {
      name: 'processes',
      include: processes,
      exclude: [...configDefaults.exclude, ...long, ...alone],
      isolate: false,
      ...patient,
      server: { deps: { inline: [workflowParser] } },
    },
    plugins: [withoutMaps],
  },
  { test: { name: 'processes-alone', include: alone, ...patient } },
  { test: { name: 'fuzz', include: ['test/fuzz/fuzz.test.ts'], ...patient } },
  {
    test: {
      name: 'integration',
      include: [
        'test/{integration,hardening,fault,resume,conformance,bench,examples}/**/*.test.ts',
        'test/cluster/*.test.ts',
        'test/soak/{machine,stage}.test.ts',
      ],
      exclude: [...configDefaults.exclude, ...long],
      // The clients of the SDKs take half a second to load, and what these tests change is in processes of their own.
      isolate: false,
      ...patient,
    },
  },
  { test: { name: 'long', include: long, ...patient, fileParallelism: false } },
  {
    test: {
      name: 'page',
      include: ['test/page/**/*.test.ts'],
      exclude: [...configDefaults.exclude, ...long],
      ...drawing,
    },
  },
];

/** `npm test -- --without redis` skips, and counts, the tests that need what is not there. */
const runner = process.env['TESTS_WITHOUT'] ? { runner: './test/support/skipping-runner.ts' } : {};

export default defineConfig({
  test: {
    // Most tests wait for processes and times of others more than they work: six workers leave two cores idle for a fifth of the time.
    maxWorkers: 4 * availableParallelism(),
    globalSetup: 'test/support/bundled-fixtures.ts',
    projects: projects.map(({ test, ...project }) => ({
      ...project,
      resolve: { alias: ownPackages },
      test: { ...test, ...runner },
    })),
  },
});
