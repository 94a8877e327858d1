// Asks a published server the same with the official SDKs: directly by their STDIO transport, and through the gateway.
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  type Answers,
  answerWithinMs,
  asked,
  blank,
  inOrder,
  type Prepared,
  type Step,
  stepsAfter,
  stepsFor,
  through,
  type Way,
  withoutEra,
  withServer,
} from './asking-servers.ts';

const clientInfo = { name: 'judge', version: '1.0.0' };
const limit = { timeout: answerWithinMs };

/** What both SDKs have. Each request is made by the method that programs use. */
type Client = Pick<
  LegacyClient,
  | 'listTools'
  | 'listPrompts'
  | 'listResources'
  | 'listResourceTemplates'
  | 'callTool'
  | 'getPrompt'
  | 'readResource'
  | 'getServerCapabilities'
  | 'getServerVersion'
  | 'getInstructions'
  | 'close'
>;

/** A client of SDK 1, and one of SDK 2 that prefers 2026-07-28. */
const clients = {
  'SDK 1': {
    async onStdio(server: StdioServer): Promise<Client> {
      const client = new LegacyClient(clientInfo);
      await client.connect(new LegacyStdio(server), limit);
      return client;
    },
    async atUrl(url: string): Promise<Client> {
      const client = new LegacyClient(clientInfo);
      // The SDK's own types do not agree with `exactOptionalPropertyTypes`.
      await client.connect(new LegacyHttp(new URL(url)) as Transport, limit);
      return client;
    },
  },
  'SDK 2': {
    async onStdio(server: StdioServer): Promise<Client> {
      const client = new ModernClient(clientInfo, { versionNegotiation: { mode: 'auto' } });
      await client.connect(new ModernStdio(server), limit);
      return client as unknown as Client;
    },
    async atUrl(url: string): Promise<Client> {
      const client = new ModernClient(clientInfo, { versionNegotiation: { mode: 'auto' } });
      await client.connect(new ModernHttp(new URL(url)), limit);
      return client as unknown as Client;
    },
  },
};

interface StdioServer {
  readonly command: string;
  readonly args: string[];
  readonly env: Record<string, string>;
  readonly cwd: string;
  readonly stderr: 'ignore';
}

const onStdio = ({ command, env, folder }: Prepared): StdioServer => {
  const [file = '', ...args] = command;
  return { command: file, args, env: { ...env }, cwd: folder, stderr: 'ignore' };
};

const methods: Readonly<Record<string, (client: Client, params: never) => Promise<unknown>>> = {
  'tools/list': (client, params) => client.listTools(params, limit),
  'prompts/list': (client, params) => client.listPrompts(params, limit),
  'resources/list': (client, params) => client.listResources(params, limit),
  'resources/templates/list': (client, params) => client.listResourceTemplates(params, limit),
  'tools/call': (client, params) => client.callTool(params, undefined, limit),
  'prompts/get': (client, params) => client.getPrompt(params, limit),
  'resources/read': (client, params) => client.readResource(params, limit),
};

/** All steps by both clients, each with its own server. The name of a step begins with that of the client. */
async function byBoth(ask: (kind: keyof typeof clients) => Promise<Answers>): Promise<Answers> {
  const answers = new Map<string, string>();
  for (const kind of ['SDK 1', 'SDK 2'] as const) {
    for (const [step, text] of await ask(kind)) answers.set(`${kind}, ${step}`, text);
  }
  return answers;
}

export const directlyBySdks: Way = (server) =>
  byBoth((kind) =>
    withServer(server, async (prepared) => askAll(server, prepared, await clients[kind].onStdio(onStdio(prepared)))),
  );

export const throughBySdks: Way = (server) =>
  byBoth((kind) =>
    through(server, async ({ url }, prepared) => askAll(server, prepared, await clients[kind].atUrl(url))),
  );

async function askAll(server: Parameters<Way>[0], prepared: Prepared, client: Client): Promise<Answers> {
  const answers = new Map<string, string>();
  const keep = (name: string, value: unknown): void =>
    void answers.set(name, blank(JSON.stringify(value ?? null, inOrder), prepared));
  const askEach = async (steps: readonly Step[]): Promise<void> => {
    for (const step of steps) keep(step.name, await answerTo(client, asked(step, prepared)));
  };
  try {
    keep('server', [client.getServerVersion(), client.getServerCapabilities(), client.getInstructions()]);
    await askEach(stepsFor(server));
    await askEach(stepsAfter(server, answers));
    return answers;
  } finally {
    await client.close();
  }
}

/** The result without what one era adds or lacks, or what the SDK says about an error. */
async function answerTo(client: Client, { method, params }: Step): Promise<unknown> {
  try {
    return withoutEra((await methods[method]?.(client, params as never)) as Record<string, unknown>);
  } catch (error) {
    const { code, message, data } = error as { code?: unknown; message: string; data?: unknown };
    return { error: { code, message, data } };
  }
}
