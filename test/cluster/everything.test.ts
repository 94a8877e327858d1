import { expect } from 'vitest';
import { scenarios2025, scenarios2026 } from '../conformance/scenarios.ts';
import { testConformance } from '../conformance/suite-tests.ts';
import { isFull } from '../fault/memory.ts';
import {
  fixtureKinds,
  modernFixtureKinds,
  modernHttpKinds,
  type ReadyServer,
  referenceKinds,
} from '../integration/server-kinds.ts';
import { newestClients, sseClients } from '../support/client-kinds.ts';
import type { Cluster } from '../support/cluster.ts';
import { hastyArgs, testCross } from '../support/cross-suite.ts';
import type { RoutedRequest } from '../support/round-robin.ts';
import { childrenOf, startFastCluster } from './fast.ts';

/** Three instances behind a balancer that sends each request to the next one, as one endpoint. */
async function startBalanced({ args, command }: Pick<ReadyServer, 'args' | 'command'>) {
  const cluster = await startFastCluster({ args: [...hastyArgs, ...args], command });
  return {
    url: cluster.url,
    descendants: () => childrenOf(cluster),
    async stop() {
      await cluster.stop();
      expectSpread(cluster);
    },
  };
}

/** Each session was served by several instances, and all of them together by each one. */
function expectSpread({ balancer, instances }: Cluster): void {
  const requests = balancer.requests.items;
  for (const id of new Set(requests.map(idOf).filter((id) => id !== undefined))) {
    const of = requests.filter((request) => idOf(request) === id);
    if (of.length > 2) expect(backendsOf(of).size).toBeGreaterThan(1);
  }
  expect(backendsOf(requests)).toEqual(new Set(instances.keys()));
}

const idOf = ({ headers }: RoutedRequest) => headers['mcp-session-id'];
const backendsOf = (requests: readonly RoutedRequest[]) => new Set(requests.map(({ backend }) => backend));

/**
 * What is in front of a server on a socket differs from one on STDIO below the session alone: one instance shows that. And
 * what clients differ in is above it: with `FAULT_FULL=1` all of them meet every server, otherwise that on STDIO.
 */
const transports = ['stdio', 'sse', 'http'];
const [onStdio, ...remote] = fixtureKinds.filter(({ transport }) => transports.includes(transport));
const clients = [...newestClients, ...sseClients.slice(0, 1)];

const balanced = 'three instances behind a balancer';
testConformance(balanced, startBalanced);
testConformance(balanced, startBalanced, scenarios2025, modernFixtureKinds.slice(0, 1));
testConformance(balanced, startBalanced, scenarios2026, modernFixtureKinds.slice(-1));
if (isFull) testConformance(balanced, startBalanced, scenarios2026, modernHttpKinds.slice(0, 1));
testCross({ servers: onStdio === undefined ? [] : [onStdio], clients, start: startBalanced });
testCross({ servers: remote, clients: isFull ? clients : newestClients.slice(-1), start: startBalanced });
testCross({ servers: referenceKinds.slice(0, 1), clients: newestClients, start: startBalanced });
