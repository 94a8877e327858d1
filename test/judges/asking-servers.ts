// Asks a published server the same directly on STDIO and through the gateway, with the messages of this file.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type Answer, post } from '../support/http-client.ts';
import { postModern } from '../support/modern-client.ts';
import { openOldStream } from '../support/old-client.ts';
import { createInbox, waitFor } from '../support/wait-for.ts';
import type { PublishedServer } from './published-servers.ts';

/** Some servers load for a long time on a busy machine. */
export const answerWithinMs = 180_000;

/** A request that a server is sent, and the name of its line in a failure. */
export interface Step {
  readonly name: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** The texts of the answers, by the names of the steps. */
export type Answers = ReadonlyMap<string, string>;

/** One way to ask a server all of its steps, or to have a client ask them. */
export type Way<T = PublishedServer> = (row: T) => Promise<Answers>;

const protocolVersion = '2025-11-25';
const clientInfo = { name: 'judge', version: '1.0.0' };
const initialize: Step = {
  name: 'initialize',
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo },
};

/** What each server is asked after `initialize`. A server without a list answers with an error, which counts as well. */
export const stepsFor = ({ calls = [] }: Pick<PublishedServer, 'calls'>): readonly Step[] => [
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

/** The first resource and the first prompt that the answers list. */
export function stepsAfter({ readsNothing = false }: PublishedServer, answers: Answers): readonly Step[] {
  if (readsNothing) return [];
  const [resource] = listIn(answers.get('resources/list'), 'resources');
  const [prompt] = listIn(answers.get('prompts/list'), 'prompts');
  const needed: readonly { readonly name: string; readonly required?: boolean }[] = prompt?.['arguments'] ?? [];
  const args = Object.fromEntries(needed.filter(({ required }) => required).map(({ name }) => [name, '1']));
  return [
    ...(resource ? [{ name: 'first resource', method: 'resources/read', params: { uri: resource['uri'] } }] : []),
    ...(prompt
      ? [{ name: 'first prompt', method: 'prompts/get', params: { name: prompt['name'], arguments: args } }]
      : []),
  ];
}

function listIn(text = '{}', member: string) {
  const message = JSON.parse(text);
  return (message.result ?? message)[member] ?? [];
}

/** A server's words, environment and folder, for one run. */
export interface Prepared {
  readonly folder: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Gives a server an empty folder, which is its home too, for as long as `use` runs. */
export async function withServer<T>(
  { words, env = {}, programOf }: PublishedServer,
  use: (prepared: Prepared) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-judged-'));
  const [program = '', ...args] = words.replaceAll('<folder>', folder).split(' ');
  const own = Object.entries(env).map(([name, value]) => [name, value.replaceAll('<folder>', folder)]);
  try {
    return await use({
      folder,
      command: [...programOf(program), ...args],
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...Object.fromEntries(own) },
    });
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Names the folder in what is asked, and takes out of an answer what differs from run to run. */
export const asked = (step: Step, { folder }: Prepared): Step =>
  JSON.parse(JSON.stringify(step).replaceAll('<folder>', folder));
export const blank = (text: string, { folder }: Prepared): string =>
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
  first: readonly Step[] = [initialize],
): Promise<Answers> {
  const answers = new Map<string, string>();
  const askEach = async (steps: readonly Step[]): Promise<void> => {
    for (const step of steps) {
      const { method, params } = asked(step, prepared);
      answers.set(step.name, blank(await ask({ jsonrpc: '2.0', id: answers.size, method, params }, step), prepared));
    }
  };
  await askEach([...first, ...stepsFor(server)]);
  await askEach(stepsAfter(server, answers));
  return answers;
}

const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };

/** Without a gateway: a process, and lines. */
export const directly: Way = (server) =>
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

/** Starts a gateway in front of the server, and expects that nothing of the server is left at its end. */
export const through = <T>(
  server: PublishedServer,
  ask: (gateway: Gateway, prepared: Prepared) => Promise<T>,
): Promise<T> =>
  withServer(server, async (prepared) => {
    const variables = Object.entries(prepared.env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    const gateway = await startGateway({
      args: [...variables, '--cwd', prepared.folder, '--defaults.timeouts.start', `${answerWithinMs}ms`],
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

export const byStreamableHttp: Way = (server) =>
  through(server, ({ url }, prepared) => askOverHttp(server, prepared, url));

/** A client of 2025-11-25 at an endpoint of Streamable HTTP. */
export function askOverHttp(server: PublishedServer, prepared: Prepared, url: string): Promise<Answers> {
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
}

export const bySse: Way = (server) => through(server, ({ baseUrl }, prepared) => askOverSse(server, prepared, baseUrl));

/** A client of HTTP+SSE, at the endpoint `/sse` of this base URL. */
export async function askOverSse(server: PublishedServer, prepared: Prepared, baseUrl: string): Promise<Answers> {
  const client = await openOldStream(baseUrl);
  try {
    return await askAll(server, prepared, async (message) => {
      const { id } = message as { id: number };
      await client.post(message);
      await client.response(id, { deadlineMs: answerWithinMs });
      if (id === 0) await client.post(initialized);
      return client.texts.findLast((text) => isResponseTo(text, id)) ?? '';
    });
  } finally {
    client.drop();
  }
}

export const byModernClient: Way = (server) =>
  through(server, ({ url }, prepared) => askAsModern(server, prepared, url));

/** A client of 2026-07-28, which sends no `initialize`. */
export const askAsModern = (server: PublishedServer, prepared: Prepared, url: string): Promise<Answers> =>
  askAll(
    server,
    prepared,
    async (message, { method }) => {
      const { id, params } = message as { id: number; params: Step['params'] };
      return responseIn(await postModern(url, method, params, { id }));
    },
    [],
  );

/** The parts of an answer that no era changes: an error, or a result without what one era adds or lacks. */
export function inBothEras(text: string): string {
  const { error, result } = JSON.parse(text);
  return JSON.stringify(error ?? withoutEra(result), inOrder);
}

/**
 * For `JSON.stringify`: sorts the members of objects. The TypeScript SDK 2 as a client and the Python SDK 2 as a server
 * order the members of a schema in one era differently than in the other.
 */
export const inOrder = (_: string, value: unknown): unknown =>
  value instanceof Object && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;

/** A result without what one era adds or lacks. */
export function withoutEra(result: Readonly<Record<string, unknown>>): object {
  const { resultType: _, _meta, ttlMs, cacheScope, ...rest } = result;
  const tools = rest['tools'] as readonly Readonly<Record<string, unknown>>[] | undefined;
  return { ...rest, ...(tools && { tools: tools.map(({ execution, ...tool }) => tool) }) };
}
