import { describe, expect, test } from 'vitest';
import type { BackendEnd, BackendEvents, Sent } from '../../../src/core/backend/backend.ts';
import {
  type CreateInterceptor,
  Interceptor,
  linkBackends,
  type Outgoing,
} from '../../../src/core/backend/link/link.ts';
import { changedMessage } from '../../../src/core/protocol/message/changed-message.ts';
import type { Message } from '../../../src/core/protocol/message/message.ts';
import { asMessage } from '../../support/as-message.ts';
import { createFakeServer } from '../../support/fake-backend.ts';

/** Notes what passes, and keeps messages back until `deliver`. */
class Keeper extends Interceptor {
  readonly #name: string;
  readonly #seen: string[];
  readonly #kept: Message[] = [];

  constructor(name: string, seen: string[]) {
    super();
    this.#name = name;
    this.#seen = seen;
  }

  override onSend(outgoing: Outgoing): Outgoing {
    this.#seen.push(`${this.#name} sends`);
    return outgoing;
  }

  override onMessages(messages: readonly Message[]): readonly Message[] {
    this.#seen.push(`${this.#name} gets`);
    this.#kept.push(...messages);
    this.hold();
    return [];
  }

  override onOver({ reason }: BackendEnd): void {
    this.#seen.push(`${this.#name} over: ${reason}`);
  }

  deliver(): void {
    this.passMessages(this.#kept.splice(0));
    this.release();
  }
}

/** Has no hook at all. */
class Idle extends Interceptor {}

function open(...interceptors: readonly CreateInterceptor[]) {
  const server = createFakeServer();
  const seen: string[] = [];
  const events: BackendEvents = {
    onMessages: (messages) => seen.push(...messages.map(({ text }) => `user: ${text}`)),
    onNoise: (text) => seen.push(`noise: ${text}`),
    onUnanswered: (ids) => seen.push(`unanswered: ${ids}`),
    onEnd: ({ reason }) => seen.push(`end: ${reason}`),
  };
  const backend = linkBackends(server.open, interceptors)(events, { session: 's' });
  return { server: server.backend, seen, backend };
}

describe('a link', () => {
  test('passes messages through its interceptors in both directions, the first one nearest to the server', () => {
    const order: string[] = [];
    const keepers: Keeper[] = [];
    const create = (name: string) => () => {
      const keeper = new Keeper(name, order);
      keepers.push(keeper);
      return keeper;
    };
    const { server, seen, backend } = open(
      create('near'),
      () => new Idle(),
      () => undefined,
      create('far'),
    );
    backend.send(asMessage('{"jsonrpc":"2.0","id":1,"method":"ping"}'));
    server.says({ jsonrpc: '2.0', id: 1, result: {} });
    expect(order.splice(0)).toEqual(['far sends', 'near sends', 'near gets']);
    keepers[0]?.deliver();
    expect([order.splice(0), seen]).toEqual([['far gets'], []]);
    keepers[1]?.deliver();
    expect(seen.splice(0)).toEqual(['user: {"jsonrpc":"2.0","id":1,"result":{}}']);
    server.says('no message');
    server.ends();
    expect([order, seen]).toEqual([
      ['near over: exited', 'far over: exited'],
      ['noise: no message', 'end: exited'],
    ]);
  });

  test('tells the interceptors of a message what became of it, and one that takes the message says so', () => {
    const told: string[] = [];
    class Listener extends Interceptor {
      readonly #name: string;
      readonly #takes: string;

      constructor(name: string, takes = '') {
        super();
        this.#name = name;
        this.#takes = takes;
      }

      override onSend({ message, headers }: Outgoing): Outgoing | Sent {
        if (message.method === this.#takes) return 'full';
        const text = Buffer.from(message.text.toString().replace('}', `,"${this.#name}":1}`));
        return { message: changedMessage(message, text, {}), headers };
      }

      override onSent({ text }: Message, result: Sent): void {
        told.push(`${this.#name}: ${result} ${text}`);
      }
    }
    const { server, backend } = open(
      () => new Listener('near'),
      () => new Listener('takes', 'taken'),
      () => new Listener('far'),
    );
    const whole = '{"jsonrpc":"2.0","method":"m","far":1,"takes":1,"near":1}';
    expect(backend.send(asMessage('{"jsonrpc":"2.0","method":"m"}'))).toBe('sent');
    expect(told.splice(0)).toEqual(['near', 'takes', 'far'].map((name) => `${name}: sent ${whole}`));
    expect(backend.send(asMessage('{"jsonrpc":"2.0","method":"taken"}'))).toBe('full');
    expect(told).toEqual(['far: full {"jsonrpc":"2.0","method":"taken","far":1}']);
    expect(server.sent.items).toHaveLength(1);
  });

  test('reads from the server only while neither its user nor an interceptor wants it to wait', () => {
    let keeper: Keeper | undefined;
    const { server, backend } = open(() => {
      keeper = new Keeper('keeper', []);
      return keeper;
    });
    const message = { jsonrpc: '2.0', method: 'notifications/x' };
    server.says(message);
    expect(server.isPaused).toBe(true);
    backend.resume();
    expect(server.isPaused).toBe(true);
    keeper?.deliver();
    expect(server.isPaused).toBe(false);
    server.says(message);
    backend.pause();
    keeper?.deliver();
    expect(server.isPaused).toBe(true);
    backend.resume();
    expect(server.isPaused).toBe(false);
  });

  test('delivers nothing after its close, and the end once', async () => {
    let keeper: Keeper | undefined;
    const { server, seen, backend } = open(() => {
      keeper = new Keeper('keeper', []);
      return keeper;
    });
    server.says({ jsonrpc: '2.0', method: 'notifications/x' });
    await backend.close();
    keeper?.deliver();
    expect(seen).toEqual(['end: closed']);
  });
});
