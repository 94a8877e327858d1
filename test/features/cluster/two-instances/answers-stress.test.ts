import { describe, expect, it, vi } from 'vitest';
import { deniesReaching } from '../../../../src/core/protocol/faults.ts';
import { note, request, response } from '../../../core/session/session-fixture.ts';
import { environmentNumber } from '../../../support/environment-number.ts';
import type { FakeReply } from '../../../support/fake-reply.ts';
import { createCluster, type Instance, takeoverMs } from './cluster-fixture.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

/** How many sessions are led through faults; more by `STRESS_SESSIONS`, others by `STRESS_SEED`. */
const sessions = environmentNumber('STRESS_SESSIONS', 40);
const seed = environmentNumber('STRESS_SEED', 1);
const steps = 14;
const maxCalls = 3;

/** A call of a client, and all connections that it had for it. */
interface Called {
  readonly id: string;
  readonly replies: FakeReply[];
}

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
function randomNumbers(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const eventsOf = ({ given }: FakeReply) => (given?.kind === 'stream' ? given.sink.events.items : []);
const isOpen = ({ given, isGone }: FakeReply): boolean =>
  !isGone && (given === undefined || (given.kind === 'stream' && given.sink.state === 'open'));
const lastIdOf = ({ replies }: Called): string | undefined =>
  replies.flatMap(eventsOf).findLast(({ id }) => id !== undefined)?.id;

/** The places at which responses to the call came, and what they said. */
function responsesTo({ id, replies }: Called): { place: string; reason: string | undefined }[] {
  return replies.flatMap((reply, connection) => {
    const { given } = reply;
    if (given?.kind === 'json') return [{ place: `${connection}`, reason: given.json.error?.data?.reason }];
    // To a GET HTTP says as much as an error for the request (`ResumeReply`).
    if (given?.kind === 'fault')
      return [{ place: `${connection}`, reason: connection === 0 ? given.reason : 'session_ended' }];
    return eventsOf(reply).flatMap(({ id: place, data = '' }) => {
      const said = data === '' ? undefined : JSON.parse(data);
      const isResponse = said?.id === id && (said.result !== undefined || said.error !== undefined);
      return isResponse ? [{ place: place ?? `${connection} without id`, reason: said.error?.data?.reason }] : [];
    });
  });
}

/** What is wrong with what a client was told of a call. */
function faultsOf(call: Called, wasRun: boolean): string[] {
  const told = responsesTo(call);
  // Whoever has its answer, and comes again when it is not kept any more, is told so.
  const hadAnswer = told.findLastIndex(({ reason }) => reason !== 'history_lost');
  const counted = told.filter(({ reason }, index) => reason !== 'history_lost' || index < hadAnswer);
  const stored = new Set(counted.filter(({ place }) => place.includes('.')).map(({ place }) => place));
  const isEmptyAt = ({ given }: FakeReply, connection: number): boolean =>
    given?.kind === 'stream' &&
    given.sink.state === 'ended' &&
    given.sink.events.items.length === 0 &&
    (connection === 0 || told.length === 0);
  const hasNothing = call.replies.some(({ given }) => given?.kind === 'nothing');
  const isUntrue = wasRun && told.some(({ reason }) => reason !== undefined && deniesReaching(reason as never));
  const isUnanswered =
    told.length === 0 && (lastIdOf(call) !== undefined || !call.replies.some(({ isGone }) => isGone));
  return [
    ...(stored.size > 1 ? [`two responses: ${JSON.stringify(told)}`] : []),
    ...(call.replies.some(isEmptyAt) ? ['an empty stream'] : []),
    ...(hasNothing && told.length === 0 ? ['204 without an answer'] : []),
    ...(isUntrue ? [`an untrue refusal: ${JSON.stringify(told)}`] : []),
    ...(isUnanswered ? ['no answer'] : []),
  ].map((fault) => `${call.id}: ${fault}`);
}

describe('[P3] [P4] calls of sessions on two instances, through cuts, partitions and lost connections,', () => {
  it.each([1_000, 8])(
    `[U-02] [U-04] have one response each, and none is false, in ${sessions} sessions, with %i events kept`,
    async (maxEvents) => {
      const random = randomNumbers(seed);
      const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
      const { a, b, open, pass } = await createCluster({ maxSessions: 10_000, streamAfterMs: 100 }, {}, maxEvents);
      const instances = [a, b];
      const backends = () => instances.flatMap(({ fake }) => fake.living);
      const wasRun = (id: string): boolean =>
        instances.some(({ fake }) => fake.opened.some(({ sent }) => sent.items.some((message) => message.id === id)));
      const found: string[] = [];
      const mendAll = (): void => {
        for (const { line } of instances) line.mend();
      };
      for (let n = 0; n < sessions; n++) {
        mendAll();
        await pass(takeoverMs);
        const session = await open(pick(instances));
        const calls: Called[] = [];
        const isRunning = (id: unknown): boolean => calls.some((call) => call.id === id);
        const answer = (): void => {
          for (const backend of backends())
            for (const { id } of backend.sent.items.filter(({ id, method }) => method && isRunning(id)))
              backend.says(response(id as string));
        };
        const resume = (call: Called, at: Instance): void => {
          const after = lastIdOf(call);
          if (after !== undefined && !call.replies.some(isOpen)) call.replies.push(at.get(session, after));
        };
        const actions: (() => unknown)[] = [
          () => {
            if (calls.length >= maxCalls) return;
            const id = `${n}-${calls.length}`;
            calls.push({ id, replies: [pick(instances).post(session, request(id))] });
          },
          () => {
            for (const backend of backends()) backend.says(...Array.from({ length: 6 }, () => note(n)));
          },
          () => random() < 0.3 && answer(),
          () => pick(calls)?.replies.at(-1)?.leave(),
          () => calls.length > 0 && resume(pick(calls), pick(instances)),
          () => pick(instances).line.cut(),
          () => random() < 0.2 && pick(instances).remove(session),
          () => pick(instances).line.mend(),
          () => pick(instances).peers.break(),
          () => pick(instances).peers.cut(),
        ];
        actions[0]?.();
        for (let step = 0; step < steps; step++) {
          pick(actions)();
          await pass(pick([0, 20, 150, 600, 3_000, takeoverMs]));
        }
        mendAll();
        await pass(takeoverMs);
        answer();
        // Whoever has no answer comes for it; whoever has one comes once more, and must not be told anything else.
        for (const at of [a, b, a, b]) {
          for (const call of calls) resume(call, at);
          await pass(2 * takeoverMs);
        }
        found.push(...calls.flatMap((call) => faultsOf(call, wasRun(call.id))));
        for (const call of calls) for (const reply of call.replies) reply.leave();
        a.remove(session);
        await pass();
      }
      expect(found, `STRESS_SEED=${seed}`).toEqual([]);
    },
    600_000,
  );
});
