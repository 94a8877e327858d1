import { modernFixtureKinds, modernHttpKinds } from '../integration/server-kinds.ts';
import { startGateway } from '../support/gateway.ts';
import { scenarios2025, scenarios2026 } from './scenarios.ts';
import { type TestedServer, testConformance } from './suite-tests.ts';

const start = ({ args, command }: TestedServer) => startGateway({ args, command });

testConformance('the gateway', start);

const modernKinds = [...modernFixtureKinds, ...modernHttpKinds.slice(0, 1)];

testConformance('the gateway', start, scenarios2026, modernKinds);

testConformance('the gateway', start, scenarios2025, modernKinds);
