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

// Every client with one transport, and every transport with clients of both eras. test/across/eras.test.ts has the eras.
const [stdio, ...otherFixtures] = fixtureKinds;
const bothEras = [...newestClients, ...modernClients];

testCross({ servers: known([stdio]), clients: [...clientKinds, ...modernClients], start });
testCross({ servers: otherFixtures, clients: bothEras, start });
testCross({ servers: referenceKinds, clients: newestClients, start });
describe('[R7.06b] [R9.11b]', () => {
  testCross({ servers: known([modernOnly]), clients: [...clientKinds, ...modernClients], start });
  testCross({ servers: known([modernHttp]), clients: bothEras, start });
});
describe('[R6.05]', () => {
  testCross({ servers: known([ofBoth, httpOfBoth, ...modernSocketKinds]), clients: modernClients, start });
});
