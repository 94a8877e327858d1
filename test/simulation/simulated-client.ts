import { deniesReaching, entryOf, isReason } from '../../src/core/protocol/faults.ts';
import { type EventId, finalSeq, parseEventId } from '../../src/core/protocol/wire/event-id.ts';
import { faultAnswer } from '../../src/core/reply/reply.ts';
import { keyFromId } from '../../src/core/session/session-key.ts';
import { nobody } from '../core/session/session-fixture.ts';
import { readMessage } from '../support/fake-backend.ts';
import type { SseEvent } from '../support/sse-reader.ts';
import type { Random } from './random.ts';
import type { SimulatedInstance } from './simulated-instance.ts';
import { type ClientAnswer, type ReplyListener, SimulatedReply } from './simulated-reply.ts';
import { asReceived, callText, initializedText, initializeText, noteText, progressText, resultText } from './texts.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** A call of a client, and all that the client learned about it. */
export interface Call {
  readonly marker: string;
  readonly id: number;
  readonly steps: number;
  /** The numbers of its progress notifications, in the order in which they came. */
  readonly progress: number[];
  lastEventId: string | undefined;
  /** The client cannot know the outcome: the connection broke before an event id came. */
  isLost: boolean;
  end: { readonly kind: 'result' } | { readonly kind: 'fault'; readonly reason: string } | undefined;
}

/** What a client needs of its world. */
export interface ClientParts {
  readonly name: string;
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly calls: number;
  /** An instance that the load balancer chooses; undefined if none is there. */
  route(): SimulatedInstance | undefined;
  violated(what: string): void;
  /** True if Redis has lost its data. Two owners may then answer a call, until one learns of the other (0015). */
  hasLostData(): boolean;
  /** True if the log of this session had this event at some time. */
  hasStored(key: string, at: EventId): boolean;
  say(what: string): void;
  ran(marker: string): number;
}

/** What becomes of one of a client's requests. */
type ClientListener = Omit<ReplyListener, 'onSentId'>;

/** A Streamable HTTP client that resumes each stream at any instance, and checks all that it hears. */
export class SimulatedClient {
  readonly calls: Call[] = [];
  readonly #parts: ClientParts;
  #sessionId: string | undefined;
  #getEventId: string | undefined;
  /** The newest log message of a server process on a stream. */
  readonly #newestNotes = new Map<string, number>();
  readonly #notes = new Set<string>();
  readonly #seenIds = new Map<string, string>();
  /** The session is gone, and the client may know it. */
  hasEnded = false;

  constructor(parts: ClientParts) {
    this.#parts = parts;
    parts.clock.after(parts.random.time(1, 5_000), 'clients', () => this.#open());
  }

  get name(): string {
    return this.#parts.name;
  }

  /** The key of the session; undefined before it is open. */
  get sessionKey(): string | undefined {
    return this.#sessionId && keyFromId(this.#sessionId);
  }

  /** True if nothing is open any more that must end. */
  get isDone(): boolean {
    return (
      this.calls.length === this.#parts.calls && this.calls.every(({ end, isLost }) => end !== undefined || isLost)
    );
  }

  #open(): void {
    const message = readMessage(initializeText(this.name));
    this.#send(
      `${this.#parts.name} opens`,
      ({ sessions, server }, reply) => sessions.open(server, nobody, message, reply),
      {
        onAnswer: (answer) => {
          const id = answer.kind === 'json' ? answer.headers?.['mcp-session-id'] : undefined;
          if (id === undefined) return this.#later(1_000, () => this.#open());
          this.#sessionId = id;
          this.#begin();
        },
        onEvent: () => this.#parts.violated('an event answers initialize'),
        onStreamEnd: () => this.#later(1_000, () => this.#open()),
      },
    );
  }

  #begin(): void {
    const { random, calls, clock } = this.#parts;
    this.#post(initializedText, ignoreAll);
    if (random.chance(0.7)) this.#listen();
    let atMs = 0;
    for (let id = 1; id <= calls; id += 1) {
      atMs += random.chance(0.5) ? random.between(0, 7_000) : random.time(1, 1_000);
      clock.after(atMs, 'clients', () => this.#call(id));
    }
  }

  #call(id: number): void {
    const { random, name } = this.#parts;
    const call: Call = {
      marker: `${name}/${id}`,
      id,
      steps: random.integer(0, 12),
      progress: [],
      lastEventId: undefined,
      isLost: false,
      end: undefined,
    };
    this.calls.push(call);
    this.#post(callText(id, call.marker, call.steps), this.#listenerOf(call));
  }

  #listenerOf(call: Call): ClientListener {
    return {
      onAnswer: (answer) => this.#onAnswer(call, answer),
      onEvent: (event) => this.#onCallEvent(call, event),
      onStreamEnd: (how) => {
        if (call.end !== undefined) return;
        if (call.lastEventId !== undefined) return this.#later(2_000, () => this.#resume(call));
        if (how === 'ended') this.#parts.violated(`${call.marker}: an empty stream`);
        call.isLost = true;
      },
    };
  }

  #onAnswer(call: Call, answer: ClientAnswer): void {
    if (answer.kind === 'json') return this.#onMessage(call, answer.json, answer.text);
    if (answer.kind !== 'fault') return this.#parts.violated(`${call.marker}: ${answer.kind} without an answer`);
    const isResume = call.lastEventId !== undefined;
    // The client comes again when the gateway says so.
    if (isResume && entryOf(answer.reason).retryAfterS !== undefined)
      return this.#later(2_000, () => this.#resume(call));
    this.#end(call, answer.reason, isResume);
  }

  #resume(call: Call): void {
    const { lastEventId = '' } = call;
    if (call.end !== undefined) return;
    this.#get(lastEventId, this.#listenerOf(call));
  }

  #onCallEvent(call: Call, { id, data = '' }: SseEvent): void {
    if (id !== undefined) {
      if (data !== '') this.#note(id, data);
      call.lastEventId = id;
    }
    if (data !== '') this.#onMessage(call, JSON.parse(data), data);
  }

  // biome-ignore lint/suspicious/noExplicitAny: messages have every shape
  #onMessage(call: Call, message: any, text: string): void {
    const { violated, hasLostData } = this.#parts;
    const { marker, progress, steps, id } = call;
    if (message.method === 'notifications/progress') {
      const { progressToken, progress: number, message: of } = message.params;
      if (text !== asReceived(progressText(marker, number))) violated(`${marker}: the client got ${text}`);
      if (progressToken !== marker || of !== marker) violated(`${marker}: progress of ${of}`);
      if (number !== progress.length + 1) violated(`${marker}: progress ${number} after ${progress.length}`);
      if (call.end !== undefined) violated(`${marker}: progress after the end`);
      progress.push(number);
      return;
    }
    if (message.method === 'notifications/message') return this.#onNote(`stream of ${id}`, message, text);
    if (message.id !== id) return violated(`${marker}: a message that is not for it: ${JSON.stringify(message)}`);
    if (message.error) return this.#end(call, message.error.data?.reason ?? 'error', false);
    const of = message.result?.content?.[0]?.text;
    if (of !== marker) violated(`${marker}: the result of ${of}`);
    else if (text !== asReceived(resultText(id, marker))) violated(`${marker}: the client got ${text}`);
    if (progress.length !== steps) violated(`${marker}: ${progress.length} of ${steps} progress notifications`);
    if (call.end !== undefined && !hasLostData()) violated(`${marker}: a second end`);
    call.end = { kind: 'result' };
  }

  #end(call: Call, reason: string, isResume: boolean): void {
    const { violated, ran, hasLostData } = this.#parts;
    if (call.end !== undefined && !hasLostData()) violated(`${call.marker}: ${reason} after its end`);
    // A refusal of a resume says nothing about the call.
    if (!isResume && isReason(reason) && deniesReaching(reason) && ran(call.marker) > 0)
      violated(`${call.marker}: ${reason}, although the server ran it`);
    call.end = { kind: 'fault', reason };
  }

  #listen(): void {
    if (this.hasEnded) return;
    this.#get(this.#getEventId, {
      onAnswer: (answer) => {
        if (answer.kind === 'fault' && answer.reason !== 'unknown_session') this.#later(3_000, () => this.#listen());
      },
      onEvent: ({ id, data = '' }) => {
        if (id !== undefined) {
          if (data !== '') this.#note(id, data);
          this.#getEventId = id;
        }
        if (data !== '') this.#onNote('GET stream', JSON.parse(data), data);
      },
      onStreamEnd: () => this.#later(3_000, () => this.#listen()),
    });
  }

  /** Each log message comes once, and the messages of a stream come in order. */
  // biome-ignore lint/suspicious/noExplicitAny: messages have every shape
  #onNote(stream: string, message: any, text: string): void {
    if (message.method !== 'notifications/message') return;
    const { by, number } = message.params.data;
    if (text !== noteText(by, number)) this.#parts.violated(`${this.name}: the client got ${text}`);
    const note = `note ${number} of ${by}`;
    if (this.#notes.has(note)) this.#parts.violated(`${note} came twice`);
    this.#notes.add(note);
    const newest = this.#newestNotes.get(`${by} ${stream}`) ?? 0;
    if (number < newest) this.#parts.violated(`${note} after ${newest} on the ${stream}`);
    this.#newestNotes.set(`${by} ${stream}`, number);
  }

  /** An event id names one message for ever. An empty event may repeat the newest id of a stream. */
  #note(id: string, data: string): void {
    const seen = this.#seenIds.get(id);
    if (seen !== undefined) this.#parts.violated(`event ${id} came twice: ${seen} and ${data}`);
    this.#seenIds.set(id, data);
  }

  #post(given: object | string, listener: ClientListener): void {
    const key = keyFromId(this.#sessionId ?? '');
    const message = readMessage(given);
    const id = message.kind === 'request' ? (message.id as number) : null;
    const what = id === null ? `${this.name} notifies` : `${this.name} calls ${id}`;
    this.#send(
      what,
      (instance, reply) => {
        const handle = instance.sessions.anywhere({ key, server: instance.server, principal: nobody });
        if (typeof handle === 'string') reply.answer(faultAnswer(handle, id));
        else handle.post({ messages: [message], isBatch: false }, reply);
      },
      listener,
    );
  }

  #get(lastEventId: string | undefined, listener: ClientListener): void {
    const key = keyFromId(this.#sessionId ?? '');
    const after = lastEventId === undefined ? undefined : parseEventId(lastEventId);
    this.#send(
      `${this.name} listens after ${lastEventId}`,
      (instance, reply) => {
        const handle = instance.sessions.anywhere({ key, server: instance.server, principal: nobody });
        if (typeof handle === 'string') reply.answer(faultAnswer(handle, null));
        else handle.listen(after, reply);
      },
      listener,
    );
  }

  /** Sends a request to the instance that the load balancer chooses. */
  #send(
    what: string,
    request: (instance: SimulatedInstance, reply: SimulatedReply) => void,
    listener: ClientListener,
  ): void {
    const { clock, random, route, say } = this.#parts;
    const instance = route();
    if (instance === undefined) {
      clock.after(500, 'clients', () => this.#send(what, request, listener));
      return;
    }
    const latencyMs = random.time(0.1, 40);
    say(`${what} at ${instance.name}`);
    let reply: SimulatedReply;
    const finish = <A extends unknown[]>(then: (...args: A) => void) => {
      return (...args: A): void => {
        instance.disconnect(reply);
        then(...args);
      };
    };
    reply = new SimulatedReply(clock, instance.name, latencyMs, {
      onAnswer: finish(listener.onAnswer),
      onEvent: listener.onEvent,
      onSentId: (at) => this.#checkStored(at),
      onStreamEnd: finish(listener.onStreamEnd),
    });
    instance.connect(reply);
    clock.after(latencyMs, instance.name, () => request(instance, reply));
  }

  /** An event id that a client may resume from names a stored event (P5), or the beginning or the end of a stream. */
  #checkStored(at: EventId): void {
    const { hasStored, violated } = this.#parts;
    if (at.seq === 0 || at.seq === finalSeq || this.sessionKey === undefined) return;
    if (!hasStored(this.sessionKey, at))
      violated(`${this.name}: the event ${at.epoch}-${at.seq} was sent before it was stored`);
  }

  #later(mostMs: number, run: () => void): void {
    this.#parts.clock.after(this.#parts.random.time(1, mostMs), 'clients', run);
  }
}

const ignoreAll: ClientListener = {
  onAnswer: () => undefined,
  onEvent: () => undefined,
  onStreamEnd: () => undefined,
};
