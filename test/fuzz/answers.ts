import assert from 'node:assert/strict';
import fc from 'fast-check';
import { examineEras } from '../../src/app/commands/check/examine-server.ts';
import type { OpenBackend } from '../../src/core/backend/backend.ts';
import { Answer } from '../../src/core/call/answer.ts';
import { LiveTarget } from '../../src/core/call/live-target.ts';
import { RerunPolicy } from '../../src/core/call/rerun.ts';
import { CredentialMarks } from '../../src/core/keys/credential-marks.ts';
import { RequestStates } from '../../src/core/keys/request-state.ts';
import { configuredKeys } from '../../src/core/keys/state-keys.ts';
import type { SharedServerEvent } from '../../src/core/ops/shared-server-events.ts';
import { readOne } from '../../src/core/protocol/message/message.ts';
import { type Envelope, readEnvelope } from '../../src/core/protocol/modern/envelope.ts';
import { Sessions } from '../../src/core/registry/sessions.ts';
import type { CompleteAnswer, EventSink, Reply } from '../../src/core/reply/reply.ts';
import type { Server } from '../../src/core/server/server.ts';
import { Session } from '../../src/core/session/session.ts';
import type { SessionTelemetry } from '../../src/core/session/session-events.ts';
import { keyFromId } from '../../src/core/session/session-key.ts';
import { createMemoryStore } from '../../src/core/store/memory/memory-store.ts';
import { reportFaultsTo } from '../../src/core/util/boundary.ts';
import { openEitherEra } from '../../src/features/eras/legacy-on-modern/open-either-era.ts';
import { Translator } from '../../src/features/eras/legacy-on-modern/translator.ts';
import { probeEra } from '../../src/features/eras/modern/era-probe.ts';
import { probeEraOverHttp } from '../../src/features/eras/modern/http-era-probe.ts';
import { SharedServer } from '../../src/features/eras/modern/process/shared-server.ts';
import { ServerEra } from '../../src/features/eras/modern/server-era.ts';
import type { ModernServerAccess } from '../../src/features/eras/modern/session-access.ts';
import { Groups } from '../../src/features/eras/modern-on-legacy/groups.ts';
import { SharedSession } from '../../src/features/eras/modern-on-legacy/session/shared-session.ts';
import { features } from '../../src/features.ts';
import { never, nobody, silentTelemetry, wideLimits } from '../core/session/session-fixture.ts';
import { readMessage } from '../support/fake-backend.ts';
import { metaKeys, modernBody } from '../support/modern-client.ts';
import { turn } from '../support/wait-for.ts';
import { record } from './corpus.ts';
import { createFuzzer, type Fuzzer } from './fuzzer.ts';
import { createHostile, expectHeard, type Kind } from './hostile-edges.ts';
import { type Step, steps } from './hostile-texts.ts';

/** Faults that a boundary had to stop, and answers that came twice. None may be there after a case. */
const slips: unknown[] = [];
reportFaultsTo((seam, cause) => slips.push(new Error(`a fault was stopped at ${seam}`, { cause })));

function expectNoSlip(): void {
  const [first] = slips.splice(0);
  if (first !== undefined) throw first;
}

/** More than anything needs that ends at all; pauses take a millisecond here. */
const manyTurns = 20_000;

/** As many turns of the event loop as what is under way may need, until nothing waits any more. */
async function settle(isDone: () => boolean, turns = 12): Promise<void> {
  for (let n = 0; n < turns && !isDone(); n++) await turn();
}

/** A client of one request, which counts what it is answered with. */
class CountingReply implements Reply {
  readonly request = { accepts: { json: true, sse: true } };
  readonly isGone = false;
  answers = 0;
  headers: Readonly<Record<string, string>> = {};
  isRefused = false;
  readonly #id: unknown;

  constructor(id: unknown) {
    this.#id = id;
  }

  answer(answer: CompleteAnswer): void {
    if (answer.kind === 'json') {
      JSON.parse(answer.text.toString());
      this.headers = answer.headers ?? {};
    }
    this.isRefused = answer.kind === 'fault';
    this.#count();
  }

  readonly onGone = (): void => undefined;

  stream(): EventSink {
    return {
      write: (batch) => {
        for (const text of batch.messageTexts) {
          const message = readOne(text);
          if (message?.kind === 'response' && message.id === this.#id) this.#count();
        }
        return true;
      },
      onDrain: () => undefined,
      onClose: () => undefined,
      end: () => undefined,
      cut: () => undefined,
    };
  }

  #count(): void {
    this.answers += 1;
    if (this.answers > 1) slips.push(new Error(`the request ${this.#id} was answered twice`));
  }
}

/** Each request has one answer, or one fault, once its server is gone. */
function expectAnswered(replies: readonly CountingReply[]): void {
  for (const [index, { answers }] of replies.entries()) assert.equal(answers, 1, `answers of request ${index}`);
}

const nothing = (): undefined => undefined;

const telemetry: SessionTelemetry = {
  ...silentTelemetry,
  emit(event) {
    if (event.type === 'session-failed' || event.type === 'store-failed') slips.push(event.cause);
  },
};

const emitShared = (event: SharedServerEvent): void => {
  if (event.type === 'shared-server-failed') slips.push(event.cause);
};

const store = createMemoryStore({ maxEvents: 100, maxBytes: 1_000_000, maxAgeMs: never });
const sessions = new Sessions({
  ...{ ...wideLimits, store, telemetry, maxSessions: 1_000 },
  ...{ recordTtlMs: never, sessionIdleMs: never, abandonedMs: never },
  connections: { store, maxEventBytes: 10_000 },
  groupRules: (session, ways) => new SharedSession(session, ways, nothing),
});

const serverOf = (open: OpenBackend, onBackendExit: Server['onBackendExit'] = 'end'): Server => ({
  ...{
    name: 's',
    digest: 'd',
    open,
    startTimeoutMs: never,
    isRemote: false,
    onBackendExit,
    reruns: new RerunPolicy('hints'),
  },
});

const requests: readonly (readonly [method: string, params: object])[] = [
  ['tools/list', {}],
  ['tools/call', { name: 'x', arguments: { region: 'r' }, _meta: { progressToken: 'token' } }],
  ['resources/read', { uri: 'a:b' }],
  ['resources/subscribe', { uri: 'a:b' }],
  ['prompts/list', {}],
  ['logging/setLevel', { level: 'debug' }],
  ['tasks/list', {}],
  ['ping', {}],
];

/** Ends all sessions, also those that a group opens anew meanwhile, until each request is answered. */
async function endSessions(replies: readonly CountingReply[]): Promise<void> {
  const isDone = (): boolean => replies.every(({ answers }) => answers > 0);
  for (let n = 0; n < 100 && (n === 0 || !isDone()); n++) {
    for (const left of [...sessions.all]) await left.end('operator');
    await settle(isDone, manyTurns / 100);
  }
}

/** One session of a legacy client, over all that a client does in it. */
async function runSession(open: OpenBackend, end: () => Promise<void>, chosen: readonly number[]): Promise<void> {
  const opening = new CountingReply(0);
  const replies = [opening];
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: { sampling: {}, elicitation: {}, roots: {} },
    clientInfo: { name: 'c', version: '1' },
  };
  const server = serverOf(open);
  const initialize = readMessage({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  sessions.open(server, nobody, initialize, opening);
  await settle(() => opening.answers > 0);
  const id = opening.headers['mcp-session-id'];
  const session = id === undefined ? undefined : sessions.anywhere({ key: keyFromId(id), server, principal: nobody });
  if (session instanceof Session) {
    session.listen(undefined, new CountingReply(undefined));
    const initialized = readMessage({ jsonrpc: '2.0', method: 'notifications/initialized' });
    session.post({ messages: [initialized], isBatch: false }, new CountingReply(undefined));
    for (const [index, which] of chosen.entries()) {
      const [method, given] = requests[which % requests.length] as (typeof requests)[number];
      const reply = new CountingReply(index + 1);
      replies.push(reply);
      const message = readMessage({ jsonrpc: '2.0', id: index + 1, method, params: given });
      session.post({ messages: [message], isBatch: false }, reply);
    }
    await settle(() => replies.every(({ answers }) => answers > 0));
    await session.end('operator');
  }
  await end();
  await endSessions(replies);
  expectAnswered(replies);
}

const newShared = (open: OpenBackend): SharedServer =>
  new SharedServer({
    server: serverOf(open, 'restore'),
    version: '1',
    limits: { maxSharedCalls: 100, maxQueuedBytes: 1e6, graceMs: 1, requestIdleMs: never, requestTotalMs: never },
    emit: emitShared,
    isOfOneUser: () => false,
    ...{ onReady: nothing, onLost: nothing, onNotModern: nothing, onTools: nothing, onToolsChanged: nothing },
  });

/** A modern server, as a translator uses it. */
const sideOf = (shared: SharedServer): ModernServerAccess => ({
  ...{ name: 's', revision: '2026-07-28', release: nothing },
  request: (request, logLevel, answer) => shared.request(request, logLevel, answer, { isOfSession: true }),
  notify: (message) => shared.notify(message),
});

const modernRequests: readonly (readonly [method: string, params: object])[] = [
  ['tools/list', {}],
  ['tools/call', { name: 'x', arguments: { region: 'r' }, _meta: { progressToken: 'token' } }],
  ['resources/read', { uri: 'a:b' }],
  ['server/discover', {}],
  ['subscriptions/listen', { notifications: { toolsListChanged: true, resourceSubscriptions: ['a:b'] } }],
];

/** Modern clients with one request each. */
function askAll(
  chosen: readonly number[],
  ask: (request: ReturnType<typeof readMessage>, answer: Answer) => void,
): CountingReply[] {
  return chosen.map((which, index) => {
    const [method, params] = modernRequests[which % modernRequests.length] as (typeof modernRequests)[number];
    const meta = { [metaKeys.clientCapabilities]: index % 2 === 0 ? { elicitation: {}, sampling: {} } : {} };
    const request = readMessage(modernBody(method, params, { id: index, meta }));
    const reply = new CountingReply(index);
    ask(request, new Answer(new LiveTarget(never), { era: 'modern', reply, ids: [index], commitAfterMs: never }));
    return reply;
  });
}

const keys = configuredKeys(['k'.repeat(32)]);

interface Given {
  readonly script: readonly Step[];
  readonly chosen: readonly number[];
  readonly kind: Kind;
  readonly isHonestAtFirst: boolean;
}

const givenOf = (...kinds: readonly Kind[]): fc.Arbitrary<Given> =>
  record<Given>({
    script: steps,
    chosen: fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 4 }),
    kind: fc.constantFrom(...kinds),
    isHonestAtFirst: fc.boolean(),
  });

function subject(name: string, share: number, kinds: readonly Kind[], check: (given: Given) => Promise<void>): Fuzzer {
  return createFuzzer<Given>({
    name: `answers: ${name}`,
    share,
    cases: givenOf(...kinds),
    async check(given) {
      await check(given);
      expectNoSlip();
    },
    expectReach() {
      for (const kind of kinds) expectHeard(kind);
    },
  });
}

const legacyKinds: readonly Kind[] = ['lines', 'http', 'sse', 'websocket'];

const inSession = subject(
  'a legacy session ends every request once, at each kind of backend',
  8,
  legacyKinds,
  async (given) => {
    const { kind, script, isHonestAtFirst, chosen } = given;
    const { open, end } = createHostile(kind, script, isHonestAtFirst ? 'tools/list' : undefined);
    await runSession(open, end, isHonestAtFirst ? [0, ...chosen] : chosen);
  },
);

const inShared = subject(
  'a shared modern process ends every request once',
  6,
  ['lines', 'modern-http'],
  async (given) => {
    const { open, end } = createHostile(given.kind, given.script, given.isHonestAtFirst ? 'tools/list' : undefined);
    const shared = newShared(open);
    const first = given.isHonestAtFirst ? [0, ...given.chosen] : given.chosen;
    const replies = askAll(first, (request, answer) => {
      const cancel = shared.request(request, 'debug', answer);
      answer.onCancelled(cancel);
    });
    await settle(() => replies.every(({ answers }) => answers > 0));
    await shared.drain(0);
    await end();
    expectAnswered(replies);
  },
);

const translated = subject(
  'a legacy session on a modern server ends every request once',
  6,
  ['lines', 'modern-http'],
  async (given) => {
    const { kind, script, isHonestAtFirst, chosen } = given;
    const { open, end } = createHostile(kind, script, isHonestAtFirst ? 'tools/list' : undefined);
    const shared = newShared(open);
    const openTranslated: OpenBackend = (events, options) =>
      new Translator({ server: sideOf(shared), isOverHttp: kind !== 'lines', maxQueuedBytes: 1e6 }, events, options);
    await runSession(openTranslated, () => shared.drain(0), isHonestAtFirst ? [0, ...chosen] : chosen);
    await end();
  },
);

const ofEitherEra = subject(
  'a session whose server is of any era ends every request once',
  4,
  ['lines'],
  async (given) => {
    const { open, end } = createHostile('lines', given.script);
    const shared = newShared(open);
    const translate: OpenBackend = (events, options) =>
      new Translator({ server: sideOf(shared), isOverHttp: false, maxQueuedBytes: 1e6 }, events, options);
    const findEra = async (): Promise<'modern' | 'legacy'> => {
      const probe = probeEra({ open, version: '1', timeoutMs: never });
      await settle(nothing as never, 2);
      await probe.close();
      return (await probe.outcome).era ?? 'legacy';
    };
    const either = openEitherEra({
      direct: open,
      translated: translate,
      era: Object.assign(
        new ServerEra({ server: serverOf(open), era: 'auto', openForProbe: open, version: '1', emit: nothing }),
        { find: findEra },
      ),
      isOverHttp: false,
      silentMs: never,
    });
    await runSession(either, () => shared.drain(0), given.chosen);
    await end();
  },
);

const inGroup = subject(
  'modern clients of a legacy server have every request ended once',
  6,
  legacyKinds,
  async (given) => {
    const { open, end } = createHostile(given.kind, given.script, given.isHonestAtFirst ? 'tools/list' : undefined);
    const groups = new Groups({
      ...{ sessions, records: store.sessions, changes: store.changes, values: store.values },
      ...{ server: serverOf(open), isolation: () => 'request', poolMax: 2, version: '1' },
      states: new RequestStates(keys, { now: () => 0 }),
      marks: new CredentialMarks(keys),
      ...{ requestIdleMs: never, settleMs: 1, maxListeners: 100 },
      onFailed: (cause) => void slips.push(cause),
      onIsolatedCall: () => undefined,
    });
    const replies = askAll(given.isHonestAtFirst ? [0, ...given.chosen] : given.chosen, (request, answer) => {
      const { envelope } = readEnvelope(request) as { envelope: Envelope };
      groups.request(request, envelope, { principal: nobody, forwarded: undefined }, answer);
    });
    await settle(() => replies.every(({ answers }) => answers > 0));
    groups.close();
    await end();
    await endSessions(replies);
    expectAnswered(replies);
  },
);

const probed = subject(
  'the question for the era is answered, whatever a server says',
  3,
  ['lines', 'modern-http'],
  async (given) => {
    const { open, end } = createHostile(given.kind, given.script);
    const probe = (given.kind === 'lines' ? probeEra : probeEraOverHttp)({ open, version: '1', timeoutMs: never });
    await turn();
    await turn();
    await end();
    await probe.close();
    const { era } = await probe.outcome;
    assert.ok(era === undefined || era === 'modern' || era === 'legacy');
  },
);

const examined = subject(
  'check and probes find what a server is or say why not',
  4,
  ['lines', 'http', 'modern-http'],
  async (given) => {
    const { kind, script, chosen, isHonestAtFirst } = given;
    const { open, end } = createHostile(kind, script, isHonestAtFirst ? 'tools/list' : undefined);
    const era = (['auto', 'legacy', 'modern'] as const)[(chosen[0] as number) % 3] as 'auto';
    const openers = { open, openModern: kind === 'http' ? undefined : open, isOverHttp: kind !== 'lines' };
    let isOver = false;
    const outcome = examineEras({ era, timeouts: { startMs: never } }, openers, features)
      .then(
        (findings) => JSON.stringify(findings),
        (error: Error) => {
          // What went wrong in the gateway itself is no sentence for the operator.
          if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError)
            slips.push(error);
        },
      )
      .finally(() => {
        isOver = true;
      });
    await settle(() => isOver);
    await end();
    await outcome;
  },
);

export const fuzzers = [inSession, inShared, translated, ofEitherEra, inGroup, probed, examined];
