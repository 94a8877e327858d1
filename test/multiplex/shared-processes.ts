import { vi } from 'vitest';
import type { LogLevel } from '../../src/core/protocol/modern/log-levels.ts';
import type { CancelRequest } from '../../src/features/eras/modern/process/shared-calls.ts';
import { discovered, readRequest, sharedOf } from '../features/eras/modern/shared-fixture.ts';
import { createFakeServer } from '../support/fake-backend.ts';
import { type CreateSubject, graceMs, type Received, type Subject, type Wire } from './subject.ts';

const foreverMs = 1_000_000;

/** Requests of modern clients at one process. */
export const openSharedProcess: CreateSubject = (users) => open(users, false);

/** The same if the gateway knows that all of them are of one user. */
export const openProcessOfUser: CreateSubject = (users) => open(users, true);

async function open(users: readonly string[], isOfOneUser: boolean): Promise<Subject> {
  const server = createFakeServer(({ id, method }, backend) => {
    if (method === 'server/discover') backend.says({ jsonrpc: '2.0', id, result: discovered });
  });
  const limits = { graceMs, requestIdleMs: foreverMs, requestTotalMs: foreverMs };
  const { shared, observed } = sharedOf(server, limits, 10_000, {}, isOfOneUser);
  shared.start();
  await vi.advanceTimersByTimeAsync(0);
  await observed.next(([what]) => what === 'shared-server-ready');
  let received: Received[] = [];
  const cancels = new Map<string, { readonly client: number; readonly cancel: CancelRequest }>();
  const keyOf = (client: number, key: string | number): string => `${client} ${key}`;
  const request = (client: number, message: Wire, level: LogLevel | undefined, key: string | number): void => {
    const beside: number | undefined = message.method === 'subscriptions/listen' ? undefined : message.id;
    const requester = { principal: { issuer: 'keys', subject: users[client] as string, client: '' } };
    const push = (text: Buffer): void => void received.push({ client, beside, message: JSON.parse(text.toString()) });
    const answer = {
      message: ({ text }: { text: Buffer }) => {
        push(text);
        return true;
      },
      response: ({ text }: { text: Buffer }) => push(text),
      fault: () => received.push({ client, beside, isEnd: true }),
    };
    const cancel = shared.request(readRequest(message), level, answer, { requester });
    cancels.set(keyOf(client, key), { client, cancel });
  };
  const cancel = (client: number, key: string | number): void => {
    cancels.get(keyOf(client, key))?.cancel();
    cancels.delete(keyOf(client, key));
  };
  return {
    rules: {
      canAsk: false,
      refusesQuestions: true,
      hasAnswers: true,
      isSilentByDefault: true,
      isOfOneUser,
      notesUsersLate: true,
      hasWishes: true,
      plainMethod: 'tools/list',
      restarts: true,
    },
    server,
    request: (client, message, level) => request(client, message, level, message.id),
    cancel,
    // An answer of a client goes to no server, and the endpoint refuses it.
    send: (_, message) => void (message.method !== undefined && shared.notify(readRequest(message))),
    subscribe: (client, uri, id) => {
      const notifications = { resourceSubscriptions: [uri] };
      const listen = { jsonrpc: '2.0', id, method: 'subscriptions/listen', params: { notifications } };
      request(client, listen, undefined, uri);
    },
    unsubscribe: cancel,
    // Each request names its own level.
    setLevel: () => undefined,
    pause: () => undefined,
    resume: () => undefined,
    leave: (client) => {
      for (const [key, open] of cancels) {
        if (open.client !== client) continue;
        open.cancel();
        cancels.delete(key);
      }
    },
    take() {
      const taken = received;
      received = [];
      return taken;
    },
    async close() {
      const drained = shared.drain(0);
      await vi.advanceTimersByTimeAsync(1);
      await drained;
    },
  };
}
