import { expect, vi } from 'vitest';
import { methodOf } from '../../src/core/protocol/methods/methods.ts';
import { type LogLevel, severities } from '../../src/core/protocol/modern/log-levels.ts';
import { subscriptionIdKey } from '../../src/core/protocol/modern/renumber.ts';
import type { FakeBackend } from '../support/fake-backend.ts';
import { graceMs, type Received, type Subject, type Wire } from './subject.ts';

/** What happens next. A `pick` chooses among what there is at that time. */
export type Step =
  | { readonly do: 'call'; readonly client: number; readonly asks: boolean; readonly hasToken: boolean }
  | { readonly do: 'answer' | 'progress' | 'log' | 'vendor' | 'question' | 'updated'; readonly pick: number }
  | { readonly do: 'reply' | 'cancel' | 'forge'; readonly client: number; readonly pick: number }
  | { readonly do: 'subscribe' | 'unsubscribe' | 'setLevel'; readonly client: number; readonly pick: number }
  | { readonly do: 'pause' | 'resume' | 'leave'; readonly client: number }
  | { readonly do: 'grace' };

const uris = ['file:///a', 'file:///b'] as const;

/** The ids of the questions of the server, which differ from all other ids. */
const questionId = (serial: number): string => `question ${serial}`;

/** A request of a client, as the test knows it. Servers find it by `mark`. */
class Call {
  readonly mark: number;
  readonly client: number;
  readonly id: number;
  readonly token: number | undefined;
  readonly method: string;
  /** The log level that the request names, where requests name one. */
  readonly level: LogLevel | undefined;
  state: 'waiting' | 'open' | 'cancelled' | 'answered' = 'waiting';
  /** The id that the server knows the request by. */
  atServer: Wire;
  tokenAtServer: Wire;
  cancelledMs = Number.NEGATIVE_INFINITY;
  outcomes = 0;
  isCancelled = false;

  constructor(mark: number, client: number, id: number, method: string, hasToken: boolean, level?: LogLevel) {
    this.mark = mark;
    this.client = client;
    this.id = id;
    this.method = method;
    this.token = hasToken ? id : undefined;
    this.level = level;
  }

  cancel(): void {
    this.state = 'cancelled';
    this.isCancelled = true;
    this.cancelledMs = performance.now();
  }

  get mayAsk(): boolean {
    return methodOf(this.method).mayAsk;
  }
}

/** Who may get a message of the server. */
interface Expected {
  /** Undefined for nobody. */
  readonly clients: readonly number[];
  /** False if it may as well get lost: nobody waits for it. */
  readonly isCertain: boolean;
  /** The call that it is about. */
  readonly call?: Call | undefined;
  readonly got: Set<number>;
}

interface Client {
  readonly user: string;
  readonly uris: Map<string, number>;
  level: LogLevel | undefined;
  lastId: number;
  isPaused: boolean;
  hasLeft: boolean;
  hasEnded: boolean;
}

/**
 * Clients, a server that keeps its protocol, and an oracle. The server knows the truth: each of its messages is about
 * one call, and most do not say which. The oracle knows which client may learn of it (P2, P11), and which must.
 */
export class World {
  readonly #subject: Subject;
  readonly #clients: readonly Client[];
  readonly #calls: Call[] = [];
  readonly #expected = new Map<number, Expected>();
  /** Questions of the server, by serial: the client that got it, and whether it has answered. */
  readonly #questions = new Map<number, { readonly call: Call; answered: boolean; isRefused: boolean }>();
  readonly #users = new Set<string>();
  #serial = 0;
  /** The number of messages to the server that were looked at. */
  #seen = 0;
  #backend: FakeBackend;
  readonly #subscribed = new Map<string, number>();
  /** The numbers of subscriptions that have an id of their own, by URI. */
  readonly #listens = new Map<Wire, string>();
  #serverLevel: LogLevel | undefined;

  constructor(subject: Subject, users: readonly string[]) {
    this.#subject = subject;
    this.#clients = users.map((user) => ({
      ...{ user, uris: new Map(), level: undefined, lastId: 0 },
      ...{ isPaused: false, hasLeft: false, hasEnded: false },
    }));
    if (!subject.rules.notesUsersLate) for (const user of users) this.#users.add(user);
    this.#backend = subject.server.backend;
    this.#seen = this.#sent().length;
  }

  async run(steps: readonly Step[], endsInLoss: boolean): Promise<void> {
    for (const step of steps) {
      this.#take(step);
      await this.#settle();
    }
    for (const [client, { isPaused }] of this.#clients.entries()) if (isPaused) this.#resume(client);
    await this.#settle();
    if (endsInLoss) await this.#lose();
    await this.#answerAll();
    for (const { client, isCancelled, outcomes, mark } of this.#calls) {
      const { hasLeft } = this.#clientAt(client);
      if (isCancelled || hasLeft) expect(outcomes, `outcomes of call ${mark}`).toBeLessThan(2);
      else expect(outcomes, `outcomes of call ${mark}`).toBe(1);
    }
  }

  #take(step: Step): void {
    switch (step.do) {
      case 'call':
        return this.#call(step.client, step.asks, step.hasToken);
      case 'answer':
        return this.#on(this.#atServer(), step.pick, (call) => this.#answer(call));
      case 'progress':
        return this.#on(
          this.#calls.filter(({ tokenAtServer }) => tokenAtServer !== undefined),
          step.pick,
          (call) => this.#progress(call),
        );
      case 'log':
        return this.#on(this.#speakable(), step.pick, (call) => this.#log(call, step.pick));
      case 'vendor':
        return this.#on(this.#speakable(), step.pick, (call) => this.#vendor(call));
      case 'question':
        return this.#on(
          this.#speakable().filter(({ mayAsk }) => mayAsk),
          step.pick,
          (call) => this.#ask(call),
        );
      case 'updated':
        return this.#update(uris[step.pick % uris.length] as string);
      case 'reply':
        return this.#reply(step.client, step.pick);
      case 'cancel':
        return this.#on(this.#openOf(step.client), step.pick, (call) => this.#cancel(call));
      case 'forge':
        return this.#forge(step.client, step.pick);
      case 'subscribe':
        return this.#subscribe(step.client, uris[step.pick % uris.length] as string);
      case 'unsubscribe':
        return this.#unsubscribe(step.client, uris[step.pick % uris.length] as string);
      case 'setLevel':
        return this.#setLevel(step.client, severities[step.pick % severities.length] as LogLevel);
      case 'pause':
        if (this.#isHere(step.client)) this.#pause(step.client);
        return;
      case 'resume':
        if (this.#isHere(step.client)) this.#resume(step.client);
        return;
      case 'leave':
        return this.#leave(step.client);
      case 'grace':
        vi.advanceTimersByTime(graceMs);
        return;
    }
  }

  #on<T>(choices: readonly T[], pick: number, act: (choice: T) => void): void {
    const choice = choices[pick % choices.length];
    if (choice !== undefined) act(choice);
  }

  #clientAt(client: number): Client {
    return this.#clients[client] as Client;
  }

  #isHere(client: number): boolean {
    const { hasLeft, hasEnded } = this.#clientAt(client);
    return !hasLeft && !hasEnded;
  }

  #hasWishes(client: number): boolean {
    return this.#isHere(client) && this.#subject.rules.hasWishes;
  }

  #nextId(client: number): number {
    const found = this.#clientAt(client);
    found.lastId += 1;
    return found.lastId;
  }

  // What clients do.

  #call(client: number, asks: boolean, hasToken: boolean): void {
    if (!this.#isHere(client)) return;
    const { level, user } = this.#clientAt(client);
    const { plainMethod } = this.#subject.rules;
    this.#users.add(user);
    const id = this.#nextId(client);
    const call = new Call(this.#calls.length, client, id, asks ? 'tools/call' : plainMethod, hasToken, level);
    this.#calls.push(call);
    const meta = hasToken ? { _meta: { progressToken: id } } : {};
    this.#subject.request(
      client,
      { jsonrpc: '2.0', id, method: call.method, params: { mark: call.mark, ...meta } },
      level,
    );
  }

  #cancel(call: Call): void {
    const cancels = this.#cancelsAtServer(call).length;
    const wasOpen = call.state === 'open';
    call.cancel();
    this.#subject.cancel(call.client, call.id);
    expect(this.#cancelsAtServer(call).length - cancels, 'cancellations at the server').toBe(Number(wasOpen));
  }

  /** Names the request of another client, and the question for another client, under every id that could fit. */
  #forge(client: number, pick: number): void {
    if (!this.#isHere(client) || this.#present().length < 2) return;
    const before = this.#sent().length;
    const others = this.#atServer().filter((call) => call.client !== client);
    this.#on(others, pick, (call) => {
      const own = new Set(this.#calls.flatMap((each) => (each.client === client ? [each.id] : [])));
      for (const id of [call.atServer, String(call.atServer)]) {
        if (own.has(id)) continue;
        this.#subject.send(client, {
          jsonrpc: '2.0',
          method: 'notifications/cancelled',
          params: { requestId: id },
        });
      }
    });
    const asked = [...this.#questions].filter(([, { call }]) => call.client !== client);
    this.#on(asked, pick, ([serial]) =>
      this.#subject.send(client, { jsonrpc: '2.0', id: questionId(serial), result: { isForged: true } }),
    );
    expect(this.#sent().length, 'forged messages at the server').toBe(before);
  }

  #reply(client: number, pick: number): void {
    const open = [...this.#questions].filter(
      ([serial, { call, answered }]) =>
        call.client === client && !answered && this.#expected.get(serial)?.got.has(client),
    );
    if (!this.#isHere(client)) return;
    this.#on(open, pick, ([serial, question]) => {
      question.answered = true;
      const before = this.#sent().length;
      this.#subject.send(client, { jsonrpc: '2.0', id: questionId(serial), result: { client } });
      expect(this.#sent().slice(before), 'the answer to a question').toMatchObject([
        { id: questionId(serial), result: { client } },
      ]);
    });
  }

  #subscribe(client: number, uri: string): void {
    if (!this.#hasWishes(client) || this.#clientAt(client).uris.has(uri)) return;
    const id = this.#nextId(client);
    this.#users.add(this.#clientAt(client).user);
    this.#clientAt(client).uris.set(uri, id);
    this.#subject.subscribe(client, uri, id);
  }

  #unsubscribe(client: number, uri: string): void {
    if (!this.#isHere(client) || !this.#clientAt(client).uris.delete(uri)) return;
    this.#subject.unsubscribe(client, uri, this.#nextId(client));
  }

  #setLevel(client: number, level: LogLevel): void {
    if (!this.#hasWishes(client)) return;
    this.#clientAt(client).level = level;
    this.#subject.setLevel(client, level, this.#nextId(client));
  }

  #pause(client: number): void {
    this.#clientAt(client).isPaused = true;
    this.#subject.pause(client);
  }

  #resume(client: number): void {
    this.#clientAt(client).isPaused = false;
    this.#subject.resume(client);
  }

  #leave(client: number): void {
    if (!this.#isHere(client) || this.#present().length < 2) return;
    const left = this.#clientAt(client);
    left.hasLeft = true;
    left.uris.clear();
    for (const call of this.#calls) {
      if (call.client === client && isUnanswered(call) && !call.isCancelled) call.cancel();
    }
    this.#subject.leave(client);
  }

  // What the server does.

  #answer(call: Call): void {
    const isOpen = call.state === 'open';
    call.state = 'answered';
    this.#say({ clients: [call.client], isCertain: isOpen, call }, (n) => ({ id: call.atServer, result: { n } }));
  }

  #progress(call: Call): void {
    const { client, state, tokenAtServer } = call;
    this.#say({ clients: [client], isCertain: state === 'open', call }, (progress) => ({
      method: 'notifications/progress',
      params: { progressToken: tokenAtServer, progress },
    }));
  }

  #log(call: Call, pick: number): void {
    const level = severities[pick % severities.length] as LogLevel;
    if (this.#subject.rules.isSilentByDefault && call.level === undefined) return;
    const expected = this.#unnamed(call, (each) => each.level !== undefined);
    const heard = expected.call ?? call;
    const wanted = this.#subject.rules.hasAnswers ? heard.level : this.#clientAt(heard.client).level;
    const isWanted = wanted === undefined || severities.indexOf(level) >= severities.indexOf(wanted);
    this.#say(isWanted ? expected : { ...expected, isCertain: false }, (data) => ({
      method: 'notifications/message',
      params: { level, data },
    }));
  }

  #vendor(call: Call): void {
    this.#say(this.#unnamed(call), (n) => ({ method: 'notifications/acme/hello', params: { n } }));
  }

  #ask(call: Call): void {
    const { canAsk, refusesQuestions } = this.#subject.rules;
    if (!canAsk && !refusesQuestions) return;
    const owners = new Set(this.#speakable().flatMap(({ mayAsk, client }) => (mayAsk ? [client] : [])));
    const isFor = canAsk && owners.size === 1 && !this.#clientAt(call.client).hasLeft;
    this.#say({ clients: isFor ? [call.client] : [], isCertain: isFor, call }, (serial) => {
      this.#questions.set(serial, { call, answered: false, isRefused: false });
      return { id: questionId(serial), method: 'elicitation/create', params: { n: serial } };
    });
  }

  /** A resource has changed. The server reports it to each subscription that it has. */
  #update(uri: string): void {
    const subscribers = [...this.#clients.keys()].filter((client) => this.#clientAt(client).uris.has(uri));
    const numbers = [...this.#listens].flatMap(([number, listened]) => (listened === uri ? [number] : []));
    const reports = this.#subject.rules.hasAnswers ? numbers : this.#subscribed.has(uri) ? [undefined] : [];
    expect(reports.length, `subscriptions of ${uri}`).toBe(
      this.#subject.rules.hasAnswers ? subscribers.length : Math.min(1, subscribers.length),
    );
    const expected = { clients: subscribers, isCertain: true };
    const serials: Expected = { ...expected, got: new Set() };
    for (const number of reports) {
      this.#say(
        expected,
        (n) => ({
          method: 'notifications/resources/updated',
          params: { uri, n, ...(number !== undefined && { _meta: { [subscriptionIdKey]: number } }) },
        }),
        serials,
      );
    }
  }

  /**
   * A message that names no call: its client gets it if no other one could be meant. One user alone gets it beside the only
   * call that this user waits for.
   * @param mayBe false for calls that it cannot be about
   */
  #unnamed(call: Call, mayBe = (_: Call): boolean => true): Omit<Expected, 'got'> {
    if (this.#subject.rules.isOfOneUser) {
      const [only, ...others] = this.#atServer().filter((each) => each.state === 'open' && mayBe(each));
      if (only === undefined || others.length > 0) return { clients: [], isCertain: true };
      return { clients: [only.client], isCertain: true, call: only };
    }
    if (this.#users.size > 1) return { clients: [], isCertain: true, call };
    const ofOne = ({ client, mark }: Call): boolean =>
      this.#subject.rules.hasAnswers ? mark === call.mark : client === call.client;
    const isOnly = this.#speakable().every(ofOne);
    const isHere = !this.#clientAt(call.client).hasLeft;
    return { clients: isHere ? [call.client] : [], isCertain: call.state === 'open' && isOnly, call };
  }

  #say(expected: Omit<Expected, 'got'>, message: (serial: number) => Wire, shared?: Expected): void {
    this.#serial += 1;
    this.#expected.set(this.#serial, shared ?? { ...expected, got: new Set() });
    this.#subject.server.backend.says({ jsonrpc: '2.0', ...message(this.#serial) });
  }

  // What the test knows.

  #present(): readonly number[] {
    return [...this.#clients.keys()].filter((client) => this.#isHere(client));
  }

  /** The requests that the server has and has not answered. */
  #atServer(): readonly Call[] {
    return this.#calls.filter((call) => isUnanswered(call) && call.atServer !== undefined);
  }

  /** Those of them that the server may still speak of, without a name. */
  #speakable(): readonly Call[] {
    const now = performance.now();
    return this.#atServer().filter(({ state, cancelledMs }) => state === 'open' || now - cancelledMs < graceMs);
  }

  #openOf(client: number): readonly Call[] {
    return this.#calls.filter(
      (call) => call.client === client && (call.state === 'open' || call.state === 'waiting') && this.#isHere(client),
    );
  }

  #sent(): readonly Wire[] {
    return this.#subject.server.backend.sent.items;
  }

  #cancelsAtServer(call: Call): readonly Wire[] {
    return this.#sent().filter(
      ({ method, params }) => method === 'notifications/cancelled' && params.requestId === call.atServer,
    );
  }

  async #settle(): Promise<void> {
    await vi.advanceTimersByTimeAsync(0);
    this.#readServer();
    await vi.advanceTimersByTimeAsync(0);
    this.#readServer();
    for (const received of this.#subject.take()) this.#check(received);
    for (const [serial, { clients, isCertain, got, call }] of [...this.#expected]) {
      const isDue = clients.every((client) => !this.#clientAt(client).isPaused || got.has(client));
      if (!isDue) continue;
      for (const client of isCertain ? clients : []) {
        const { hasLeft, hasEnded } = this.#clientAt(client);
        if (!hasLeft && !hasEnded)
          expect(got, `receivers of message ${serial} of call ${call?.mark}`).toContain(client);
      }
      this.#expected.delete(serial);
      const question = this.#questions.get(serial);
      if (question === undefined) continue;
      this.#expected.set(serial, { clients, isCertain: false, got, call });
      if (clients.length === 0) expect(question.isRefused, `question ${serial} is refused`).toBe(true);
    }
    for (const { level } of this.#present().map((client) => this.#clientAt(client))) {
      if (level === undefined || this.#subject.rules.hasAnswers) continue;
      const told = this.#serverLevel === undefined ? -1 : severities.indexOf(this.#serverLevel);
      expect(told, 'the level of the server').toBeLessThanOrEqual(severities.indexOf(level));
    }
  }

  /** Reads what the server got, and answers what no test is about. */
  #readServer(): void {
    const { backend } = this.#subject.server;
    if (backend !== this.#backend) this.#seen = 0;
    this.#backend = backend;
    for (; this.#seen < this.#sent().length; this.#seen += 1) {
      const message = this.#sent()[this.#seen];
      const { id, method, params } = message;
      if (method === undefined) this.#noteRefusal(message);
      else if (params?.mark !== undefined) this.#arrive(message);
      else if (method === 'subscriptions/listen') this.#acknowledge(id, params.notifications);
      else if (method === 'notifications/cancelled') this.#listens.delete(params.requestId);
      else if (id !== undefined && method !== 'server/discover') {
        if (method === 'logging/setLevel') this.#serverLevel = params.level;
        if (method === 'resources/subscribe') this.#subscribed.set(params.uri, 1);
        if (method === 'resources/unsubscribe') this.#subscribed.delete(params.uri);
        this.#subject.server.backend.says({ jsonrpc: '2.0', id, result: {} });
      }
    }
  }

  #arrive({ id, params, method }: Wire): void {
    const call = this.#calls[params.mark] as Call;
    expect(call.state, `call ${call.mark} at the server`).toBe('waiting');
    for (const other of this.#atServer()) expect(other.atServer, 'the id of another call').not.toBe(id);
    const askers = this.#atServer().filter(({ mayAsk, client }) => mayAsk && client !== call.client);
    const mayAsk = call.mayAsk && this.#subject.rules.canAsk && this.#present().length > 1;
    if (mayAsk && askers.some(({ state }) => state === 'open')) throw new Error('two clients could be asked');
    expect(method).toBe(call.method);
    call.state = 'open';
    call.atServer = id;
    call.tokenAtServer = params._meta?.progressToken;
    expect(call.tokenAtServer === undefined).toBe(call.token === undefined);
  }

  #acknowledge(number: Wire, notifications: Wire): void {
    const [uri] = notifications.resourceSubscriptions;
    this.#listens.set(number, uri);
    const params = { _meta: { [subscriptionIdKey]: number }, notifications };
    this.#subject.server.backend.says({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params,
    });
  }

  #noteRefusal({ id, error }: Wire): void {
    const serial = typeof id === 'string' ? Number(id.split(' ')[1]) : Number.NaN;
    const question = this.#questions.get(serial);
    if (question !== undefined && error !== undefined) question.isRefused = true;
  }

  #check({ client, beside, message, isEnd }: Received): void {
    if (isEnd === true) return this.#end(client, beside);
    const { id, method, params, result } = message;
    expect(this.#clientAt(client).hasLeft, `client ${client} has left`).toBe(false);
    if (method === undefined && result?.n === undefined) return; // the answer to a subscription or a level
    if (method === 'notifications/subscriptions/acknowledged') return;
    const serial = result?.n ?? params?.n ?? params?.progress ?? params?.data;
    if (serial === undefined) return; // what a new process may have changed
    const expected = this.#expected.get(serial);
    if (expected === undefined) throw new Error(`client ${client} got message ${serial} late, or twice`);
    const { clients, got, call } = expected;
    expect(clients, `receivers of message ${serial} of call ${call?.mark}`).toContain(client);
    expect(got, `message ${serial}, twice`).not.toContain(client);
    got.add(client);
    if (call !== undefined && beside !== undefined) expect(beside, `the answer with message ${serial}`).toBe(call.id);
    if (method === undefined) {
      expect(id).toBe(call?.id);
      if (call !== undefined) call.outcomes += 1;
    } else if (params.progressToken !== undefined) expect(params.progressToken).toBe(call?.token);
  }

  /** A request has ended without a response, or all of them have, with the connection of the client. */
  #end(client: number, beside: number | undefined): void {
    const ended = this.#calls.filter((call) => call.client === client && (beside === undefined || call.id === beside));
    if (beside === undefined) this.#clientAt(client).hasEnded = true;
    for (const call of ended) {
      if (!isUnanswered(call)) continue;
      call.outcomes += 1;
      if (call.state !== 'cancelled') call.state = 'answered';
    }
  }

  /** The server ends by itself. A new process knows no request. */
  async #lose(): Promise<void> {
    const { server, rules } = this.#subject;
    server.backend.ends();
    for (const call of this.#calls) {
      if (call.state === 'open') call.state = 'waiting';
      call.atServer = undefined;
      call.tokenAtServer = undefined;
    }
    this.#listens.clear();
    await vi.advanceTimersByTimeAsync(1_000);
    await this.#settle();
    if (!rules.restarts) expect(this.#present(), 'clients of the lost server').toEqual([]);
  }

  async #answerAll(): Promise<void> {
    for (let rounds = 0; rounds < 1_000; rounds += 1) {
      const open = this.#atServer().filter(({ state }) => state === 'open');
      const [next] = open.length > 0 ? open : this.#atServer();
      if (next === undefined) return;
      this.#answer(next);
      await this.#settle();
    }
  }
}

const isUnanswered = ({ state }: Call): boolean => state !== 'answered';
