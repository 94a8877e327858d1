import type { OutgoingHttpHeaders } from 'node:http';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { root } from './gateway.ts';
import { type Answer, initialize } from './http-client.ts';
import { callModern } from './modern-client.ts';

/** The command of a STDIO server that keeps connections in its process. */
export const keepingFixture = [process.execPath, `${root}test/fixtures/keeping-server.mjs`] as const;

const [alice, bob] = ['alice', 'bob'].map(makeKey) as [ReturnType<typeof makeKey>, ReturnType<typeof makeKey>];

/** The variable with API keys for both users. */
export const usersEnv = { GANGWAY_API_KEYS: `${alice.variable},${bob.variable}` };

/** The headers of each user. */
export const users = {
  alice: { Authorization: `Bearer ${alice.key}` },
  bob: { Authorization: `Bearer ${bob.key}` },
} as const satisfies Record<string, OutgoingHttpHeaders>;

/** The state of the process that a call reaches. */
export interface Kept {
  readonly connections: readonly string[];
  readonly pid: number;
  /** The name of the last client. */
  readonly client: string | undefined;
}

/** A client of `keepingFixture`. */
export interface Keeper {
  connect(name: string): Promise<void>;
  list(): Promise<Kept>;
}

/** From an answer of either kind: on a busy machine JSON can become a stream. */
const keptIn = ({ messages }: Answer): Kept => JSON.parse(messages.at(-1).result.content[0].text);

/** A client of the modern era. */
export function modernKeeper(url: string, headers: OutgoingHttpHeaders = {}, name?: string, more?: object): Keeper {
  const info = name === undefined ? {} : { 'io.modelcontextprotocol/clientInfo': { name, version: '1' } };
  const meta = { ...info, ...more };
  return {
    connect: async (connection) => void (await callModern(url, 'connect', { name: connection }, { headers, meta })),
    list: async () => keptIn(await callModern(url, 'list_connections', {}, { headers, meta })),
  };
}

/** A client of the legacy era, with a session. */
export async function legacyKeeper(url: string, headers: OutgoingHttpHeaders = {}): Promise<Keeper> {
  const session = await initialize(url, { headers });
  const call = (tool: string, args: object) => session.request('tools/call', { name: tool, arguments: args });
  return {
    connect: async (connection) => void (await call('connect', { name: connection })),
    list: async () => keptIn(await call('list_connections', {})),
  };
}
