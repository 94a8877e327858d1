import { expect, onTestFinished } from 'vitest';
import type { KeptProcessesOptions } from '../../../src/app/features/servers.ts';
import type { Backend, OpenOptions, ProcessHolder } from '../../../src/core/backend/backend.ts';
import { KeptProcesses } from '../../../src/features/sharing/kept-processes.ts';
import { createFakeServer, readMessage } from '../../support/fake-backend.ts';
import { createInbox } from '../../support/wait-for.ts';

export const alice = { issuer: 'keys', subject: 'alice', client: '' };
export const bob = { issuer: 'keys', subject: 'bob', client: '' };
/** A client that is known to open a session for each call. */
export const hosted = 'openai-mcp';
/**
 * A client's `initialize`.
 * @param client its name, and after an `@` its version
 */
export const initialize = (id: number | string, client = hosted, capabilities: object = {}) => {
  const [name, version = '1'] = client.split('@');
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name, version } };
  return { jsonrpc: '2.0', id, method: 'initialize', params };
};
export const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
/** A request of a client. */
export const call = (id: number | string, method = 'tools/call', params: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

/** An answer. */
export const result = (id: unknown, value: object = {}) => ({ jsonrpc: '2.0', id, result: value });
export const notification = (method: string, params: object = {}) => ({ jsonrpc: '2.0', method, params });
/** The params of a call with a progress token. */
export const withToken = (token: unknown) => ({ name: 't', _meta: { progressToken: token } });
/** A progress notification. */
export const progress = (progressToken: unknown, value = 1) =>
  notification('notifications/progress', { progressToken, progress: value });

/** A session as far as its backend sees it. */
export class FakeHolder implements ProcessHolder {
  isLeft = false;
  quietMs = 0;
  answered = 1;
  isOver = false;
  starts = 0;
  released = 0;
  expired = 0;
  backend: Backend | undefined;

  onStart(): void {
    this.starts += 1;
  }

  release(): void {
    this.released += 1;
    void this.backend?.close({ mayBeKept: true });
  }

  expire(): void {
    this.expired += 1;
  }
}

/** Options of `createFixture`. */
export interface FixtureOptions extends Partial<KeptProcessesOptions> {
  readonly ignoresPings?: boolean;
  /** The capabilities of the clients, and of the server. */
  readonly capabilities?: object;
  readonly serverCapabilities?: object;
  /** The server answers no `initialize`. */
  readonly isSilent?: boolean;
}

/** Sessions that share the processes of a fake server. */
export function createFixture(options: FixtureOptions = {}) {
  const fake = createFakeServer((message, backend) => {
    const { id, method } = message;
    const capabilities = options.serverCapabilities ?? {};
    const result = { protocolVersion: '2025-11-25', capabilities, pid: backend.pid };
    if (method === 'initialize' && options.isSilent !== true) backend.says({ jsonrpc: '2.0', id, result });
    if (method === 'ping' && options.ignoresPings !== true) backend.says({ jsonrpc: '2.0', id, result: {} });
  });
  const kept = new KeptProcesses({
    open: fake.open,
    reuse: () => 'user',
    lingerMs: 60_000,
    maxKept: 10,
    ...options,
  });
  onTestFinished(() => kept.close());

  const open = (opening: Partial<OpenOptions> = {}) => {
    const holder = new FakeHolder();
    // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
    const received = createInbox<any>();
    const ends = createInbox<string>();
    /** Requests without an answer, and how many messages the session had before. */
    const unanswered = createInbox<readonly unknown[]>();
    const backend = kept.open(
      {
        onMessages: (messages) => {
          for (const { text } of messages) received.push(JSON.parse(text.toString()));
        },
        onNoise: () => undefined,
        onUnanswered: (ids) => unanswered.push([received.items.length, ...ids]),
        onEnd: ({ reason }) => ends.push(reason),
      },
      { principal: alice, holder, ...opening },
    );
    holder.backend = backend;
    const send = (message: unknown): ReturnType<Backend['send']> => backend.send(readMessage(message));
    /** Opens as a client does. Resolves with the pid of the process. */
    const shake = async (id: number | string = 0, name = hosted): Promise<number> => {
      send(initialize(id, name, options.capabilities));
      const answer = await received.next();
      expect(answer.id).toBe(id);
      send(initialized);
      return answer.result.pid;
    };
    return { backend, holder, received, unanswered, ends, send, shake };
  };
  /** A session that was opened and ended. */
  const openAndLeave = async (opening: Partial<OpenOptions> = {}, name = hosted): Promise<number> => {
    const session = open(opening);
    const pid = await session.shake(0, name);
    await session.backend.close({ mayBeKept: true });
    expect(await session.ends.next()).toBe('closed');
    return pid;
  };
  return { fake, kept, open, openAndLeave };
}

/**
 * Two sessions in one process.
 * @param other the user of the second one; by default, that of the first
 */
export async function openTwo(options: FixtureOptions = {}, other = alice) {
  const fixture = createFixture({ sharedBy: 'all', cancelGraceMs: 5_000, ...options });
  const [first, second] = [fixture.open(), fixture.open({ principal: other })];
  const pid = await first.shake();
  expect(await second.shake()).toBe(pid);
  const server = fixture.fake.backend;
  /** The newest message to the server. */
  const newest = () => server.sent.items.at(-1);
  const methods = () => server.sent.items.map(({ method }) => method);
  return { ...fixture, first, second, server, newest, methods };
}
