import { everythingFixture, startGateway } from '../support/gateway.ts';
import { testConformance } from './suite-tests.ts';

testConformance('the gateway', () => startGateway({ command: everythingFixture }));
