import { fixtureKinds } from '../integration/server-kinds.ts';
import { startGateway } from '../support/gateway.ts';
import { scenarios2026Translated } from './scenarios.ts';
import { testConformance } from './suite-tests.ts';

/** Servers that know nothing of the era: each request has a process, or a connection, of its own. */
const legacyKinds = fixtureKinds.filter(({ transport }) => ['stdio', 'sse'].includes(transport));

testConformance(
  'the gateway',
  ({ args, command }) => startGateway({ args, command }),
  scenarios2026Translated,
  legacyKinds,
);
