// Published servers from npm, each asked the same directly on STDIO and through the gateway.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeAll } from 'vitest';
import { suiteNode } from '../conformance/suite.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type Answer, post } from '../support/http-client.ts';
import { postModern } from '../support/modern-client.ts';
import { openOldStream } from '../support/old-client.ts';
import { createInbox, waitFor } from '../support/wait-for.ts';
import { installServers, serversFolder } from './install-clients.ts';
import { type Arm, type Outcome, type Outcomes, testJudge } from './judge.ts';
import { type PublishedServer, publishedServers } from './published-servers.ts';

/** Some servers load for a long time on a busy machine. */
const answerWithinMs = 60_000;

/** A request that a server is sent, and the name of its line in a failure. */
interface Step {
  readonly name: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

const protocolVersion = '2025-11-25';
const clientInfo = { name: 'judge', version: '1.0.0' };
const initialize: Step = {
  name: 'initialize',
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo },
};

/** What each server is asked after `initialize`. A server without a list answers with an error, which counts as well. */
const stepsFor = ({ calls = [] }: PublishedServer): readonly Step[] => [
  ...['tools', 'prompts', 'resources', 'resources/templates'].map((list) => ({
    name: `${list}/list`,
    method: `${list}/list`,
    params: {},
  })),
  ...calls.map(([tool, args], index) => ({
    name: `call ${index + 1}, ${tool}`,
    method: 'tools/call',
    params: { name: tool, arguments: args },
  })),
  { name: 'call of an unknown tool', method: 'tools/call', params: { name: 'no such tool', arguments: {} } },
];

/** A server's words, environment and folder, for one run. */
interface Prepared {
  readonly folder: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Gives a server an empty folder, which is its home too, for as long as `use` runs. */
async function withServer<T>(
  { words, env = {} }: PublishedServer,
  use: (prepared: Prepared) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-judged-'));
  const [program = '', ...args] = words.replaceAll('<folder>', folder).split(' ');
  const own = Object.entries(env).map(([name, value]) => [name, value.replaceAll('<folder>', folder)]);
  try {
    return await use({
      folder,
      command: [suiteNode, join(serversFolder, 'node_modules', program), ...args],
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...Object.fromEntries(own) },
    });
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Names the folder in what is asked, and takes out of an answer what differs from run to run. */
const asked = (step: Step, { folder }: Prepared): Step =>
  JSON.parse(JSON.stringify(step).replaceAll('<folder>', folder));
const blank = (text: string, { folder }: Prepared): string =>
  text
    .replaceAll(folder, '<folder>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, '<time>')
    .replace(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/gi, '<uuid>')
    .trimEnd();

/** Asks one thing after the other. `ask` resolves with the text of the response. */
async function askAll(
  server: PublishedServer,
  prepared: Prepared,
  ask: (message: object, step: Step) => Promise<string>,
  steps: readonly Step[] = [initialize, ...stepsFor(server)],
): Promise<Map<string, string>> {
  const answers = new Map<string, string>();
  for (const [id, step] of steps.entries()) {
    const { method, params } = asked(step, prepared);
    answers.set(step.name, blank(await ask({ jsonrpc: '2.0', id, method, params }, step), prepared));
  }
  return answers;
}

const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };

/** Without a gateway: a process, and lines. */
const directly = (server: PublishedServer) =>
  withServer(server, async (prepared) => {
    const { command, env, folder } = prepared;
    const [file = '', ...args] = command;
    const child = spawn(file, args, { cwd: folder, env, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
    const exited = once(child, 'exit');
    const lines = createInbox<string>();
    createInterface({ input: child.stdout }).on('line', lines.push);
    exited.then(([code]) => lines.end(new Error(`${server.name} has ended with code ${code}`)));
    const send = (message: object): void => void child.stdin.write(`${JSON.stringify(message)}\n`);
    const answers = await askAll(server, prepared, (message) => {
      const { id } = message as { id: number };
      send(message);
      if (id === 0) send(initialized);
      return lines.next((line) => isResponseTo(line, id), { what: `answer ${id}`, deadlineMs: answerWithinMs });
    }).finally(() => {
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGKILL');
    });
    await exited;
    return answers;
  });

function isResponseTo(line: string, id: number): boolean {
  if (!line.startsWith('{')) return false;
  const message = JSON.parse(line);
  return message.id === id && message.method === undefined;
}

const through = (
  server: PublishedServer,
  ask: (gateway: Gateway, prepared: Prepared) => Promise<Map<string, string>>,
) =>
  withServer(server, async (prepared) => {
    const variables = Object.entries(prepared.env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    const gateway = await startGateway({
      args: [...variables, '--cwd', prepared.folder],
      command: prepared.command,
      // As users run it: the tests of the repository set another value.
      env: { GANGWAY_SHARE: undefined },
    });
    try {
      return await ask(gateway, prepared);
    } finally {
      await gateway.stop();
      await waitFor(async () => (await gateway.descendants()).length === 0, { what: `no process of ${server.name}` });
    }
  });

/** The text of the only response in an answer. */
const responseIn = ({ text, events, messages }: Answer): string =>
  events.findLast(({ data = '' }) => data !== '' && JSON.parse(data).method === undefined)?.data ??
  (messages.length === 1 ? text : `no response: ${text}`);

const byStreamableHttp = (server: PublishedServer) =>
  through(server, async ({ url }, prepared) => {
    let session = {};
    return askAll(server, prepared, async (message) => {
      const answer = await post(url, message, { ...session, 'MCP-Protocol-Version': protocolVersion });
      const id = answer.headers['mcp-session-id'];
      if (id !== undefined) {
        session = { 'Mcp-Session-Id': id };
        await post(url, initialized, session);
      }
      return responseIn(answer);
    });
  });

const bySse = (server: PublishedServer) =>
  through(server, async ({ baseUrl }, prepared) => {
    const client = await openOldStream(baseUrl);
    const answers = await askAll(server, prepared, async (message) => {
      const { id } = message as { id: number };
      await client.post(message);
      await client.response(id, { deadlineMs: answerWithinMs });
      if (id === 0) await client.post(initialized);
      return client.texts.findLast((text) => isResponseTo(text, id)) ?? '';
    });
    client.drop();
    return answers;
  });

/** A client of 2026-07-28 sends no `initialize`. */
const byModernClient = (server: PublishedServer) =>
  through(server, ({ url }, prepared) =>
    askAll(
      server,
      prepared,
      async (message, { method }) => {
        const { id, params } = message as { id: number; params: Step['params'] };
        return responseIn(await postModern(url, method, params, { id }));
      },
      stepsFor(server),
    ),
  );

/** The parts of an answer that no era changes: an error, or a result without what one era adds or lacks. */
function inBothEras(text: string): string {
  const { error, result } = JSON.parse(text);
  if (error !== undefined) return JSON.stringify(error);
  const { resultType: _, _meta, ttlMs, cacheScope, ...rest } = result;
  const tools = rest.tools?.map(({ execution, ...tool }: Record<string, unknown>) => tool);
  return JSON.stringify({ ...rest, ...(tools && { tools }) });
}

let expected = new Map<string, ReadonlyMap<string, string>>();

const direct: Arm = {
  name: 'direct',
  async run() {
    expected = await answersOfAll(directly);
    return new Map([...expected].map(([name, answers]) => [name, { passed: answers.size, failed: [] }]));
  },
};

async function answersOfAll(
  ask: (server: PublishedServer) => Promise<Map<string, string>>,
): Promise<Map<string, ReadonlyMap<string, string>>> {
  const all = new Map<string, ReadonlyMap<string, string>>();
  for (const server of publishedServers) all.set(server.name, await ask(server));
  return all;
}

/** An arm passes a step if the answer is the same as directly. */
const armOf = (
  name: string,
  ask: (server: PublishedServer) => Promise<Map<string, string>>,
  compared: (text: string) => string = (text) => text,
): Arm => ({
  name,
  async run(): Promise<Outcomes> {
    const all = await answersOfAll(ask);
    return new Map([...all].map(([server, answers]) => [server, outcomeOf(answers, server)]));

    function outcomeOf(answers: ReadonlyMap<string, string>, server: string): Outcome {
      const differing = [...answers].filter(
        ([step, text]) => compared(text) !== compared(expected.get(server)?.get(step) ?? 'null'),
      );
      return { passed: answers.size - differing.length, failed: differing.map(([step]) => step) };
    }
  },
});

beforeAll(installServers, 1_000_000);

testJudge('Published servers', direct, [
  armOf('Streamable HTTP', byStreamableHttp),
  armOf('HTTP+SSE', bySse),
  armOf('2026-07-28', byModernClient, inBothEras),
]);
