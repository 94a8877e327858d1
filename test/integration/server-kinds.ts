import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { everythingFixture, everythingReference, modernFixture } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import {
  type Feature,
  featuresOfFixture,
  featuresOfModernFixture,
  featuresOfReference,
} from '../support/sdk-features.ts';
import { createInbox } from '../support/wait-for.ts';
import { argumentsFor, startRemoteServer } from './remote-server.ts';

/** What a gateway is told so that it stands in front of a server, and the end of what the gateway does not end. */
export interface ReadyServer {
  readonly args: readonly string[];
  readonly command: readonly string[];
  stop(): Promise<void>;
}

/** A kind of server: a program and how it is reached. */
export interface ServerKind {
  readonly name: string;
  /** As `check` calls it. */
  readonly transport: string;
  readonly features: readonly Feature[];
  /** It serves no sessions: those of legacy clients are the gateway's. */
  readonly isModern?: boolean;
  /** Readies it. Whoever does stops it. */
  ready(): Promise<ReadyServer>;
}

const startedByGateway = async (command: readonly string[], ...args: readonly string[]): Promise<ReadyServer> => ({
  args,
  command,
  stop: async () => undefined,
});

async function readyRemote(...args: readonly string[]): Promise<ReadyServer> {
  const { url, stop } = await startRemoteServer(...args);
  return { args: argumentsFor(url), command: [], stop };
}

async function readyUnix(kind: string): Promise<ReadyServer> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-unix-'));
  const server = await readyRemote(kind, join(folder, 'server.sock'));
  return {
    ...server,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true });
    },
  };
}

const ofFixture = (transport: string, ready: ServerKind['ready']): ServerKind => ({
  name: `our own fixture on ${transport}`,
  transport,
  features: featuresOfFixture,
  ready,
});

const ofReference = (transport: string, ready: ServerKind['ready']): ServerKind => ({
  name: `server-everything on ${transport}`,
  transport,
  features: featuresOfReference,
  ready,
});

/** Starts `server-everything` on a port that was free a moment ago: it does not tell the one it gets. */
async function readyReference(transport: 'sse' | 'streamableHttp', path: string): Promise<ReadyServer> {
  const [file = '', program = ''] = everythingReference;
  const port = await findFreePort();
  const env = { ...process.env, PORT: `${port}` };
  const child = spawn(file, [program, transport], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  const said = createInbox<string>();
  child.stderr.setEncoding('utf8').on('data', said.push);
  await said.next((text) => /running on port|listening on port/.test(text), { what: 'server-everything to listen' });
  return {
    args: argumentsFor(`http://127.0.0.1:${port}${path}`),
    command: [],
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Our own fixture on every transport. */
export const fixtureKinds: readonly ServerKind[] = [
  ofFixture('stdio', () => startedByGateway(everythingFixture)),
  ofFixture('tcp', () => readyRemote('tcp')),
  ofFixture('unix', () => readyUnix('unix')),
  ofFixture('sse', () => readyRemote('sse')),
  ofFixture('http', () => readyRemote('http')),
  ofFixture('ws', () => readyRemote('ws')),
];

/** The reference server on every transport that it has. */
export const referenceKinds: readonly ServerKind[] = [
  ofReference('stdio', () => startedByGateway(everythingReference)),
  ofReference('sse', () => readyReference('sse', '/sse')),
  ofReference('http', () => readyReference('streamableHttp', '/mcp')),
];

const ofModernFixture = (name: string, transport: string, ready: ServerKind['ready']): ServerKind => ({
  ...{ name, transport, ready },
  features: featuresOfModernFixture,
  isModern: true,
});

/** Our modern fixture as a program whose era is found out. */
export const modernOnly = ofModernFixture('a modern server', 'stdio', () => startedByGateway(modernFixture));

/** The same, where that is said, and together with the other era. */
export const modernFixtureKinds: readonly ServerKind[] = [
  ofModernFixture('a server that is said to be modern', 'stdio', () =>
    startedByGateway(modernFixture, '--era', 'modern'),
  ),
  ofModernFixture('a server of both eras', 'stdio', () => startedByGateway([...modernFixture, '--dual'])),
];

/** The same, as a service on Streamable HTTP. */
export const modernHttpKinds: readonly ServerKind[] = [
  ofModernFixture('a modern server on http', 'http', () => readyRemote('modern')),
  ofModernFixture('a server of both eras on http', 'http', () => readyRemote('both')),
];

/** The same, as a service whose connections are framed as STDIO. */
export const modernSocketKinds: readonly ServerKind[] = [
  ofModernFixture('a modern server on tcp', 'tcp', () => readyRemote('modern-tcp')),
  ofModernFixture('a modern server on a unix socket', 'unix', () => readyUnix('modern-unix')),
];
