import { clientKinds } from '../support/client-kinds.ts';
import { hastyArgs, testCross } from '../support/cross-suite.ts';
import { startGateway } from '../support/gateway.ts';
import { serverKinds } from './server-kinds.ts';

testCross({
  servers: serverKinds,
  clients: clientKinds,
  start: ({ args, command }) => startGateway({ args: [...hastyArgs, ...args], command }),
});
