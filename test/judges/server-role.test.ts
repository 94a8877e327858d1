import { beforeAll } from 'vitest';
import { installSuite, runSuite } from '../conformance/suite.ts';
import { fixtureKinds, modernFixtureKinds, modernHttpKinds, type ServerKind } from '../integration/server-kinds.ts';
import { startGateway } from '../support/gateway.ts';
import { type Arm, type Outcomes, testJudge } from './judge.ts';
import { outcomeOf } from './outcome-of.ts';
import { type PeerName, startPeer } from './peers.ts';

async function runAgainst(url: string, revision: string): Promise<Outcomes> {
  const { checks } = await runSuite(url, revision, []);
  return new Map([...checks].map(([scenario, all]) => [scenario, outcomeOf(all)]));
}

const kindOf = (kinds: readonly ServerKind[], transport: string): ServerKind => {
  const kind = kinds.find((candidate) => candidate.transport === transport);
  if (kind === undefined) throw new Error(`There is no kind of server on ${transport}`);
  return kind;
};

/** The suite against the server itself, which listens on HTTP. */
const directly = (revision: string, kind: ServerKind): Arm => ({
  name: 'direct',
  async run() {
    const { args, stop } = await kind.ready();
    return runAgainst(args[0] ?? '', revision).finally(stop);
  },
});

const through = (name: string, revision: string, kind: ServerKind, options: readonly string[] = []): Arm => ({
  name,
  async run() {
    const { args, command, stop } = await kind.ready();
    const gateway = await startGateway({ args: [...options, ...args], command });
    const outcomes = await runAgainst(gateway.url, revision);
    await gateway.stop();
    await stop();
    return outcomes;
  },
});

const throughPeer = (peer: PeerName, revision: string): Arm => ({
  name: peer,
  isPeer: true,
  async run() {
    const { url, stop } = await startPeer(peer);
    return runAgainst(url, revision).finally(stop);
  },
});

beforeAll(installSuite);

const sharedByMany = ['--share', 'all', '--defaults.poolMax', '32'];
const http = kindOf(fixtureKinds, 'http');
const stdio = kindOf(fixtureKinds, 'stdio');
const modernStdio = kindOf(modernFixtureKinds, 'stdio');
const modernHttp = kindOf(modernHttpKinds, 'http');

testJudge('Conformance suite, server role, 2025-11-25', directly('2025-11-25', http), [
  through('STDIO', '2025-11-25', stdio),
  through('HTTP+SSE', '2025-11-25', kindOf(fixtureKinds, 'sse')),
  through('Streamable HTTP', '2025-11-25', http),
  through('WebSocket', '2025-11-25', kindOf(fixtureKinds, 'ws')),
  through('modern STDIO', '2025-11-25', modernStdio),
  throughPeer('supergateway', '2025-11-25'),
  throughPeer('mcp-proxy', '2025-11-25'),
]);

testJudge('Conformance suite, server role, 2026-07-28', directly('2026-07-28', modernHttp), [
  through('modern STDIO', '2026-07-28', modernStdio),
  through('modern Streamable HTTP', '2026-07-28', modernHttp),
  // With a process for each request, more answers come too late for the suite on a busy machine.
  // The suite abandons some input requests. Each of their calls keeps one of the shared processes until it expires.
  through('legacy STDIO, `--share all --defaults.poolMax 32`', '2026-07-28', stdio, sharedByMany),
]);
