import { startGateway } from '../support/gateway.ts';
import { testSdkClients } from '../support/sdk-suite.ts';

testSdkClients((command) => startGateway({ command }));
