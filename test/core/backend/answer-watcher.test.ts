import { expect, onTestFinished, test } from 'vitest';
import type { BackendEvents } from '../../../src/core/backend/backend.ts';
import { AnswerWatcher } from '../../../src/core/backend/link/answer-watcher.ts';
import { linkBackends, type Outgoing } from '../../../src/core/backend/link/link.ts';
import { createMessage, type Message } from '../../../src/core/protocol/message/message.ts';
import { reportFaultsTo } from '../../../src/core/util/boundary.ts';
import { asMessage } from '../../support/as-message.ts';
import { createFakeServer } from '../../support/fake-backend.ts';
import { turn } from '../../support/wait-for.ts';

/** Remembers the method of each request, and keeps the answers to `slow`. */
class Watcher extends AnswerWatcher<string> {
  readonly lost: string[] = [];
  /** Decide about the kept answers, in their order. */
  readonly decide: ((isGood: boolean) => void)[] = [];

  override onSend(outgoing: Outgoing): Outgoing {
    if (outgoing.message.kind === 'request') this.note(outgoing.message, outgoing.message.method ?? '');
    return outgoing;
  }

  protected override onAnswer(answer: Message, method: string): Message | undefined {
    if (method !== 'slow') return answer;
    const decided = new Promise<Message>((resolve, reject) => {
      const passed = createMessage({ id: answer.id, result: 'decided' });
      this.decide.push((isGood) => (isGood ? resolve(passed) : reject(new Error('no decision'))));
    });
    this.keep(answer, undefined, decided, 'result_unchecked');
    return undefined;
  }

  protected override onLost(method: string, why: string, isSent: boolean): void {
    this.lost.push(`${method}: ${why}${isSent ? '' : ', not sent'}`);
  }
}

function open() {
  const server = createFakeServer();
  const seen: string[] = [];
  const watcher = new Watcher();
  const events: BackendEvents = {
    onMessages: (messages) => seen.push(...messages.map(({ id, text }) => `${id} ${text.includes('decided')}`)),
    onNoise: () => undefined,
    onUnanswered: (ids) => seen.push(`unanswered: ${ids}`),
    onEnd: ({ reason }) => seen.push(`end: ${reason}`),
  };
  const backend = linkBackends(server.open, [() => watcher])(events, { session: 's' });
  const ask = (id: number, method: string) => backend.send(asMessage(JSON.stringify({ jsonrpc: '2.0', id, method })));
  return { server: server.backend, seen, watcher, ask };
}

test('[P3] kept answers go on when they are decided, other messages meanwhile, and the end after all of them', async () => {
  const faults: unknown[] = [];
  onTestFinished(reportFaultsTo((_, cause) => faults.push(cause)));
  const { server, seen, watcher, ask } = open();
  for (const [index, method] of ['slow', 'fast', 'slow', 'slow', 'never'].entries()) ask(index, method);
  server.says([0, 1, 2, 3].map((id) => ({ jsonrpc: '2.0', id, result: {} })));
  expect(seen.splice(0)).toEqual(['1 false']);
  server.ends();
  watcher.decide[1]?.(true);
  watcher.decide[0]?.(true);
  await turn();
  expect(seen.splice(0)).toEqual(['2 true', '0 true']);
  expect(watcher.lost).toEqual([]);
  watcher.decide[2]?.(false);
  await turn();
  expect(seen).toEqual(['3 false', 'end: exited']);
  expect(watcher.lost).toEqual(['never: server_exited']);
  expect(faults).toHaveLength(1);
});

test('[P8] the server is not read while too many bytes are kept', async () => {
  const { server, watcher, ask } = open();
  for (let id = 1; id <= 17; id += 1) {
    expect(server.isPaused).toBe(false);
    ask(id, 'slow');
    server.says({ jsonrpc: '2.0', id, result: { text: 'x'.repeat(1_000_000) } });
  }
  expect(server.isPaused).toBe(true);
  for (const decide of watcher.decide.slice(0, 2)) decide(true);
  await turn();
  expect(server.isPaused).toBe(false);
});
