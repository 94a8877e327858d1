import { fixtureKinds, modernFixtureKinds } from '../integration/server-kinds.ts';
import { modernFixture } from '../support/gateway.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { scenarios2025, scenarios2026WithTasks } from './scenarios.ts';
import { type TestedServer, testConformance } from './suite-tests.ts';

const start = ({ args, command }: TestedServer) => startLocalGateway({ args, command });

// All other kinds of servers: translated.test.ts.
testConformance('the gateway', start, scenarios2025, fixtureKinds.slice(0, 1));

/** A modern server, with the extension for tasks, which only clients of this era know. */
const withTasks = {
  name: 'a server that is said to be modern, with tasks',
  ready: async () => ({
    args: ['--era', 'modern'],
    command: [...modernFixture, '--tasks'],
    stop: async () => undefined,
  }),
};

testConformance('the gateway', start, scenarios2026WithTasks, [withTasks]);

testConformance('the gateway', start, scenarios2025, modernFixtureKinds.slice(0, 1));
