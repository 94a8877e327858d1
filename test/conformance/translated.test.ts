import { fixtureKinds, modernFixtureKinds, modernHttpKinds } from '../integration/server-kinds.ts';
import { startGateway } from '../support/gateway.ts';
import { scenarios2025, scenarios2026, scenarios2026Translated } from './scenarios.ts';
import { type TestedServer, testConformance } from './suite-tests.ts';

/** Servers that know nothing of the era: each request has a process, or a connection, of its own. */
const legacyKinds = fixtureKinds.filter(({ transport }) => ['stdio', 'sse'].includes(transport));

const start = ({ args, command }: TestedServer) => startGateway({ args, command });

testConformance('the gateway', start, scenarios2026Translated, legacyKinds);

/** Servers at a URL. conformance.test.ts has a program. */
const kindsAtUrl = fixtureKinds.filter(({ transport }) => ['http', 'sse'].includes(transport));

testConformance('the gateway', start, scenarios2025, kindsAtUrl);

/** Servers of both eras and services of the modern one. conformance.test.ts has a program. */
testConformance('the gateway', start, scenarios2026, [...modernFixtureKinds.slice(1), ...modernHttpKinds.slice(0, 1)]);

/** Servers that know only the modern era, in front of clients of the older one. The first is in conformance.test.ts. */
testConformance('the gateway', start, scenarios2025, [...modernFixtureKinds.slice(1), ...modernHttpKinds.slice(0, 1)]);
