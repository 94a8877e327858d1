import { everythingFixture, modernFixture, startGateway } from '../support/gateway.ts';
import { scenarios2026 } from './scenarios.ts';
import { testConformance } from './suite-tests.ts';

testConformance('the gateway', () => startGateway({ command: everythingFixture }));

testConformance(
  'the gateway in front of a server of the modern era',
  () => startGateway({ command: modernFixture, args: ['--era', 'modern'] }),
  scenarios2026,
);

testConformance(
  'the gateway in front of a server of both eras',
  () => startGateway({ command: [...modernFixture, '--dual'] }),
  scenarios2026,
);
