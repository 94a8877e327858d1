// A client of each SDK asks each kind of server the same, directly and through the gateway, and must get the same. On one way
// its connections are cut and the gateway restarts in the middle, on another one of two instances is killed.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import {
  fixtureKinds,
  modernFixtureKinds,
  modernHttpKinds,
  type ReadyServer,
  type ServerKind,
} from '../integration/server-kinds.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { startRoundRobin } from '../support/round-robin.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { type Answers, inBothEras, stepsFor, type Way } from './asking-servers.ts';
import { isAsked } from './judge.ts';
import { canRun, installSdks, type Sdk, type Started, sdks } from './sdks/sdks.ts';
import { startToldClient, type ToldClient } from './sdks/told-client.ts';
import { compare } from './server-arms.ts';

/** A client in front of a kind of server: a row of the tables. */
interface ClientAtServer {
  readonly name: string;
  readonly sdk: Sdk;
  readonly kind: ServerKind;
}

const [bothOnStdio] = modernFixtureKinds.filter(({ name }) => name === 'a server of both eras');
const [bothOnHttp] = modernHttpKinds.filter(({ name }) => name === 'a server of both eras on http');
const ofTransport = (wanted: string) => fixtureKinds.find(({ transport }) => transport === wanted);

/** With both eras on HTTP, clients of 2025-11-25 have sessions, and those of 2026-07-28 have none. */
const kinds = [
  ['STDIO', ofTransport('stdio')],
  ['STDIO, both eras', bothOnStdio],
  ['HTTP+SSE', ofTransport('sse')],
  ['Streamable HTTP', ofTransport('http')],
  ['Streamable HTTP, both eras', bothOnHttp],
] as const;

/** With characters and members that a careless copy would change, and an answer that takes so long that it is an event. */
const result = {
  resultType: 'complete',
  content: [{ type: 'text', text: 'é\u2028"\\', annotations: { priority: 0.5 } }],
  structuredContent: { z: 1, a: [null, true, 9_007_199_254_740_991], '': '\u0000' },
  _meta: { 'example.com/own': 'kept' },
};
const steps = [
  ...stepsFor({
    calls: [
      ['echo', { text: 'hello, "world"\n\u2028é' }],
      ['test_image_content', {}],
      ['test_multiple_content_types', {}],
      ['raw_result', { json: JSON.stringify(result) }],
      ['test_error_handling', {}],
      ['progress', { count: 3, gapMs: 20, marker: 'done' }],
      ['slow', { ms: 300 }],
    ],
  }),
  { name: 'a resource', method: 'resources/read', params: { uri: 'test://static-binary' } },
  { name: 'no resource', method: 'resources/read', params: { uri: 'test://none' } },
  {
    ...{ name: 'a prompt', method: 'prompts/get' },
    params: { name: 'test_prompt_with_arguments', arguments: { arg1: '1', arg2: 'é' } },
  },
];
const afterHalf = Math.floor(steps.length / 2);
const connectedAtOnce = 3;

/** The revisions that a client has spoken on all ways. With one of them, every byte must be the same. */
const revisions = new Map<string, Set<string>>();
const compared = (text: string, name: string): string => (revisions.get(name)?.size === 1 ? text : inBothEras(text));

/** Connects a client, and asks everything. After half of it, `disturb` runs. */
async function answersOf(
  { sdk, name }: ClientAtServer,
  started: Pick<Started, 'endpoint' | 'url'>,
  disturb: (client: ToldClient) => Promise<unknown> = async () => undefined,
): Promise<Answers> {
  const client = await startToldClient(sdk, { ...started, key: 'none', name: 'judge' });
  try {
    const { error, revision = '' } = await client.tell('connect');
    if (error !== undefined) throw new Error(error);
    revisions.set(name, (revisions.get(name) ?? new Set()).add(revision));
    const answers = new Map<string, string>();
    for (const [index, step] of steps.entries()) {
      if (index === afterHalf) await disturb(client);
      const answer = JSON.stringify(await client.ask(step));
      answers.set(step.name, answer.replace(/127\.0\.0\.1:\d+/g, '<address>'));
    }
    return answers;
  } finally {
    await client.stop();
  }
}

/** A way that needs a server, which runs for as long as the client asks. */
const withReady =
  (ask: (row: ClientAtServer, server: ReadyServer) => Promise<Answers>): Way<ClientAtServer> =>
  async (row) => {
    const server = await row.kind.ready();
    return ask(row, server).finally(server.stop);
  };

/** An SDK without HTTP+SSE, or without STDIO, is compared with what it gets from the same server on the other one. */
const directly = withReady(async (row, { args, command }) => {
  const [url = ''] = args;
  if (command.length > 0) return answersOf(row, { endpoint: 'stdio', url: command.join(' ') });
  if (!url.endsWith('/sse')) return answersOf(row, { endpoint: 'mcp', url });
  if (row.sdk.endpoints.includes('sse')) return answersOf(row, { endpoint: 'sse', url });
  const onStdio = await ofTransport('stdio')?.ready();
  return answersOf(row, { endpoint: 'stdio', url: onStdio?.command.join(' ') ?? '' });
});

const startBefore = ({ args, command }: ReadyServer, port: number, ...options: readonly string[]): Promise<Gateway> =>
  startGateway({ port, args: [...options, ...args], command, env: { GANGWAY_SHARE: undefined } });

const through = (endpoint: 'mcp' | 'sse') =>
  withReady(async (row, server) => {
    await using gateway = await startBefore(server, 0);
    return await answersOf(row, { endpoint, url: `${gateway.baseUrl}/${endpoint}` });
  });

const withCutAndRestart = withReady(async (row, server) => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-sdk-clients-'));
  const store = ['--replay.store', `file:${folder}`];
  const first = await startBefore(server, 0, ...store);
  let second: Gateway | undefined;
  const disturb = async (client: ToldClient) => {
    client.proxy?.resetAll();
    await client.ask({ method: 'tools/list', params: {} });
    await first.stop();
    second = await startBefore(server, first.port, ...store);
  };
  try {
    return await answersOf(row, { endpoint: 'mcp', url: first.url }, disturb);
  } finally {
    await first.stop();
    await second?.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

const withTwoInstances = withReady(async (row, server) => {
  await using redis = await startUsedRedis();
  await using one = await startBefore(server, 0, '--redis', redis.url);
  await using other = await startBefore(server, 0, '--redis', redis.url);
  await using balancer = await startRoundRobin({ backends: [one.baseUrl, other.baseUrl], isRecorded: false });
  const disturb = async () => {
    balancer.setInRotation(0, false);
    await one.stop('SIGKILL');
  };
  return await answersOf(row, { endpoint: 'mcp', url: `${balancer.baseUrl}/mcp` }, disturb);
});

const available = sdks.filter(canRun);
for (const { name, language } of sdks.filter((sdk) => !available.includes(sdk)))
  test.skip(`${name}: needs ${language.programs.join(' and ')}`, () => undefined);

const rows = available
  .flatMap((sdk) =>
    kinds.flatMap(([name, kind]): ClientAtServer[] =>
      kind === undefined ? [] : [{ name: `${sdk.name} at ${name}`, sdk, kind }],
    ),
  )
  .filter(({ name }) => isAsked(name));
beforeAll(() => installSdks(rows.map(({ sdk }) => sdk)), 1_800_000);

const options = { atOnce: connectedAtOnce };
compare(
  'SDKs at each kind of server, by /mcp',
  rows,
  directly,
  [
    { name: 'the gateway', way: through('mcp'), compared },
    { name: 'cut and restart', way: withCutAndRestart, compared },
    { name: 'two instances, Redis, one killed', way: withTwoInstances, compared },
  ],
  options,
);
compare(
  'SDKs at each kind of server, by /sse',
  // With both eras on HTTP, each era has a server of its own, and a client of 2026-07-28 speaks the other one at /sse.
  rows.filter(({ sdk, kind }) => sdk.endpoints.includes('sse') && kind !== bothOnHttp),
  directly,
  [{ name: 'the gateway', way: through('sse'), compared }],
  options,
);
