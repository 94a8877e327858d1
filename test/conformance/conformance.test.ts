import { startGateway } from '../support/gateway.ts';
import { testConformance } from './suite-tests.ts';

testConformance('the gateway', ({ args, command }) => startGateway({ args, command }));
