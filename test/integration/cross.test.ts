import { clientKinds, newestClients } from '../support/client-kinds.ts';
import { hastyArgs, testCross } from '../support/cross-suite.ts';
import { startGateway } from '../support/gateway.ts';
import { fixtureKinds, type ReadyServer, referenceKinds } from './server-kinds.ts';

const start = ({ args, command }: Pick<ReadyServer, 'args' | 'command'>) =>
  startGateway({ args: [...hastyArgs, ...args], command });

testCross({ servers: fixtureKinds, clients: clientKinds, start });
testCross({ servers: referenceKinds, clients: newestClients, start });
