import { describe } from 'vitest';
import { clientKinds, modernClients, newestClients } from '../support/client-kinds.ts';
import { hastyArgs, testCross } from '../support/cross-suite.ts';
import { startGateway } from '../support/gateway.ts';
import {
  fixtureKinds,
  modernFixtureKinds,
  modernHttpKinds,
  modernOnly,
  modernSocketKinds,
  type ReadyServer,
  referenceKinds,
} from './server-kinds.ts';

/**
 * Modern clients share the session of their group, so that what one of them is told of is what another one changes. The
 * process of an ended session ends when a session would be idle.
 */
const start = ({ args, command }: Pick<ReadyServer, 'args' | 'command'>) =>
  startGateway({ args: [...hastyArgs, '--share', 'all', '--session-idle', '5s', ...args], command });

const [modernHttp, httpOfBoth] = modernHttpKinds;
const [, ofBoth] = modernFixtureKinds;
const known = <T>(kinds: readonly (T | undefined)[]): readonly T[] => kinds.filter((kind) => kind !== undefined);

testCross({ servers: fixtureKinds, clients: [...clientKinds, ...modernClients], start });
testCross({ servers: referenceKinds, clients: newestClients, start });
describe('[R7.06b] [R9.11b]', () => {
  testCross({ servers: known([modernOnly, modernHttp]), clients: [...clientKinds, ...modernClients], start });
});
describe('[R6.05]', () => {
  testCross({ servers: known([ofBoth, httpOfBoth, ...modernSocketKinds]), clients: modernClients, start });
});
