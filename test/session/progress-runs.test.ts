import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { messagesOf, ProgressRun, type ServerUnit } from '../../src/protocol/message/progress-run.ts';
import { parseEventId } from '../../src/protocol/wire/event-id.ts';
import { runOf } from '../support/event-runs.ts';
import { readMessage } from '../support/fake-backend.ts';
import { acceptsBoth, acceptsJson, createFakeReply, type FakeReply } from '../support/fake-reply.ts';
import { openSessions } from './open-sessions.ts';
import { note, request, response, turn } from './session-fixture.ts';

/** So small that runs are divided, evicted in their middle, and have events that are too large. */
const limits = { maxEventBytes: 200, logLimits: { maxEvents: 40, maxBytes: 8_000 } };

/** Calls 1 and 2 may be answered with a stream, and 3 only with JSON. Nobody has sent a call 4. */
const accepts = [acceptsBoth, acceptsBoth, acceptsJson];

/** What the server writes, or the client does, in one step. */
type Step =
  | { readonly kind: 'progress'; readonly call: number; readonly count: number; readonly bytes: number }
  | { readonly kind: 'response' | 'cancel'; readonly call: number }
  | { readonly kind: 'note' | 'turn' | 'read' | 'stall' };

const progress = (token: string, n: number, bytes: number): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken: token, progress: n, message: 'x'.repeat(bytes) },
  });

const eventsOf = ({ given }: FakeReply): unknown =>
  given?.kind === 'stream'
    ? given.sink.events.items.map(({ id, data }) => [positionOf(id), data])
    : given && { ...given, headers: undefined };

/** The epochs of two sessions differ. */
function positionOf(id: string | undefined): unknown {
  const position = id === undefined ? undefined : parseEventId(id);
  return position && [position.stream, position.seq, position.requests];
}

/** Everything that clients see of a session whose server does these steps, with runs or one by one. */
async function run(
  { open, telemetry }: ReturnType<typeof openSessions>,
  steps: readonly Step[],
  hasRuns: boolean,
): Promise<unknown> {
  telemetry.drops.length = 0;
  const { session, backend } = await open();
  const post = (message: unknown, accepted = acceptsBoth): FakeReply => {
    const reply = createFakeReply(accepted);
    session.post({ messages: [readMessage(message)], isBatch: false }, reply);
    return reply;
  };
  const listen = createFakeReply();
  session.listen(undefined, listen);
  const replies = accepts.map((accepted, index) =>
    post(request(index + 1, 'tools/call', { name: 'x', _meta: { progressToken: `t${index + 1}` } }), accepted),
  );
  const sinks = () => [listen, ...replies].flatMap(({ given }) => (given?.kind === 'stream' ? [given.sink] : []));
  const numbers = new Map<number, number>();
  let units: ServerUnit[] = [];
  const write = (): void => {
    if (units.length > 0) backend.saysUnits(...(hasRuns ? units : messagesOf(units)));
    units = [];
  };
  for (const step of steps) {
    if (step.kind === 'progress') {
      const from = numbers.get(step.call) ?? 0;
      numbers.set(step.call, from + step.count);
      const texts = Array.from({ length: step.count }, (_, n) => progress(`t${step.call}`, from + n, step.bytes));
      units.push(new ProgressRun(runOf(texts), `t${step.call}`));
      continue;
    }
    if (step.kind === 'response') units.push(readMessage(response(step.call)));
    else if (step.kind === 'note') units.push(readMessage(note(units.length)));
    else {
      write();
      if (step.kind === 'cancel')
        post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: step.call } });
      else if (step.kind === 'turn') await turn();
      else {
        for (const sink of sinks()) sink.keepsUp = step.kind === 'read';
        if (step.kind === 'read') for (const sink of sinks()) sink.drain();
      }
    }
  }
  write();
  for (const sink of sinks()) sink.keepsUp = true;
  for (let round = 0; round < 40; round += 1) {
    for (const sink of sinks()) sink.drain();
    await turn();
  }
  const seen = [listen, ...replies].map(eventsOf);
  const ids = sinks().flatMap((sink) => sink.ids);
  const resumed: unknown[] = [];
  for (const id of ids) {
    const reply = createFakeReply();
    session.listen(parseEventId(id), reply);
    for (let round = 0; round < 3; round += 1) await turn();
    resumed.push(eventsOf(reply));
  }
  const drops = [...telemetry.drops];
  await session.end('deleted');
  return { seen, resumed, drops, sent: backend.sent.items };
}

describe('runs of progress in a session', () => {
  it('[P2] [P4] [P8] look to clients like single notifications: on streams, in resumes, at every limit', async () => {
    const call = fc.integer({ min: 1, max: 4 });
    const count = fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 7, max: 60 }));
    const step: fc.Arbitrary<Step> = fc.oneof(
      { weight: 6, arbitrary: fc.record({ kind: fc.constant('progress'), call, count, bytes: fc.nat(130) }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('response', 'cancel'), call }) },
      { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('note', 'turn', 'read', 'stall') }) },
    );
    const sessions = openSessions(limits);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
        const single = await run(sessions, steps, false);
        expect(await run(sessions, steps, true)).toEqual(single);
      }),
      { numRuns: 25 },
    );
  });
});
