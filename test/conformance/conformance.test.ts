import { modernFixture, startGateway } from '../support/gateway.ts';
import { scenarios2026 } from './scenarios.ts';
import { type TestedServer, testConformance } from './suite-tests.ts';

const start = ({ args, command }: TestedServer) => startGateway({ args, command });

testConformance('the gateway', start);

const modernKinds = [
  { name: 'a server that is said to be modern', args: ['--era', 'modern'], command: modernFixture },
  { name: 'a server of both eras', args: [], command: [...modernFixture, '--dual'] },
].map(({ name, ...server }) => ({ name, ready: async () => ({ ...server, stop: async () => undefined }) }));

testConformance('the gateway', start, scenarios2026, modernKinds);
