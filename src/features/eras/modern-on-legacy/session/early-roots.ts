import { WaitingList } from '../../../../core/backend/waiting-budget.ts';
import type { Call, SessionCalls } from '../../../../core/call/session-calls.ts';
import type { RequestId } from '../../../../core/protocol/faults.ts';
import { nextOwnId } from '../../../../core/protocol/ids/own-ids.ts';
import { createMessage, type Message } from '../../../../core/protocol/message/message.ts';
import type { GroupWays } from '../../../../core/session/group-rules.ts';
import { TimeLimit } from '../../../../core/util/timing/time-limit.ts';
import { GatewayAnswer } from './gateway-answer.ts';

/** How long a call waits at most for a server that does not answer a ping, in milliseconds. */
const maxPingMs = 2_000;

/** How long a call waits after the roots have reached its server. Servers check directories before they use them. */
const settleMs = 50;

/** How long a client has to answer until the client of another call that waits is asked too, in milliseconds. */
const askAgainMs = 5_000;

/** A call that waits for the roots, and sends itself. */
interface HeldCall {
  readonly call: Call;
  /** The bytes of its request. */
  readonly bytes: number;
  send(): void;
}

/**
 * The request for roots that a server sends right after its start, when no client of the group has a call (2025-11-25,
 * client/roots). Some servers ask only then, and refuse every call without roots. So the request waits for the first
 * call whose client can be asked, and this call waits for the roots (docs/decisions/0027).
 */
export class EarlyRoots {
  readonly #calls: Pick<SessionCalls, 'holds'>;
  readonly #ways: Pick<GroupWays, 'call' | 'ask'>;
  /**
   * `new`: it is not known whether the server asks. `checking`: a ping will show that. `asking`: the server waits for the
   * roots. `settled`: it has them, or has not asked.
   */
  #state: 'new' | 'checking' | 'asking' | 'settled' = 'new';
  /** The request from the server that no client has answered. */
  #request: Message | undefined;
  /** The calls that wait, of which a session has a limited number. Mostly, it has one. */
  readonly #held = new WaitingList<HeldCall>(({ bytes }) => bytes);
  /** The call whose client was asked, as long as no other one is to be asked. */
  #asked: Call | undefined;
  /** The calls whose clients were asked. */
  #triedCalls = new WeakSet<Call>();
  #askTimer: NodeJS.Timeout | undefined;
  #timer: TimeLimit | undefined;
  /** The number of processes so far. Pings of an earlier one say nothing about the current one. */
  #round = 0;

  constructor(calls: Pick<SessionCalls, 'holds'>, ways: Pick<GroupWays, 'call' | 'ask'>) {
    this.#calls = calls;
    this.#ways = ways;
  }

  /** Keeps a request for roots until a client can be asked. False if the request belongs to a call. */
  keeps(request: Message): boolean {
    const isEarly = this.#state === 'new' || this.#state === 'checking';
    if (request.method !== 'roots/list' || !isEarly || this.#request !== undefined) return false;
    this.#request = request;
    return true;
  }

  /**
   * Whether a call has to wait. One that waits is sent once the server has its roots.
   * @param bytes those of its request. The calls that wait have a limit (P8)
   * @returns `full` if the call can neither be sent nor wait
   */
  holds(call: Call, bytes: number, send: () => void): boolean | 'full' {
    if (this.#state === 'settled') return false;
    if (!this.#held.hasRoomFor(bytes)) return 'full';
    this.#held.push({ call, bytes, send });
    if (this.#state === 'asking') this.#ask();
    else if (this.#state === 'new') {
      this.#state = 'checking';
      this.#whenRead(() => this.#check());
    }
    return true;
  }

  /** The client has answered a request from the server, or it was refused. */
  noteAnswered({ id }: Message): void {
    if (this.#request === undefined || this.#request.id !== id) return;
    this.#request = undefined;
    this.#whenRead(() => {
      this.#timer = new TimeLimit(() => this.#settle(), settleMs);
    });
  }

  /** True for the request that the clients are asked. */
  isAsked(id: RequestId): boolean {
    return this.#request !== undefined && this.#request.id === id;
  }

  /** A call is over. If its client was asked, the client of another one is asked. */
  noteTaken(call: Call): void {
    if (call === this.#asked) this.#askNext();
  }

  /** The process is lost. What happens to the calls that wait is decided with all other calls of the process. */
  noteLost(): void {
    this.#held.takeAll();
    this.#request = undefined;
    this.close();
  }

  /** Another process serves the group: it may ask, too. Calls that came while it started still wait. */
  reset(): void {
    this.close();
    this.#round += 1;
    this.#state = 'new';
    this.#asked = undefined;
    this.#triedCalls = new WeakSet();
    this.#request = undefined;
    for (const { call, bytes, send } of this.#held.takeAll())
      if (this.#calls.holds(call)) this.holds(call, bytes, send);
  }

  close(): void {
    this.#timer?.clear();
    clearTimeout(this.#askTimer);
  }

  #check(): void {
    if (this.#request === undefined) return this.#settle();
    this.#state = 'asking';
    this.#ask();
  }

  #ask(): void {
    if (this.#request === undefined || (this.#asked !== undefined && this.#calls.holds(this.#asked))) return;
    this.#asked = this.#held.find(({ call }) => this.#calls.holds(call) && !this.#triedCalls.has(call))?.call;
    if (this.#asked === undefined) return;
    this.#triedCalls.add(this.#asked);
    clearTimeout(this.#askTimer);
    this.#askTimer = setTimeout(() => this.#askNext(), askAgainMs);
    this.#ways.ask(this.#request, this.#asked);
  }

  #askNext(): void {
    clearTimeout(this.#askTimer);
    this.#asked = undefined;
    if (this.#state === 'asking') this.#ask();
  }

  #settle(): void {
    this.#state = 'settled';
    this.#asked = undefined;
    clearTimeout(this.#askTimer);
    // A call that its client has cancelled meanwhile is not sent.
    for (const { call, send } of this.#held.takeAll()) if (this.#calls.holds(call)) send();
  }

  /** Calls back once the server has read everything that was sent to it: the answer to a ping shows that. */
  #whenRead(onRead: () => void): void {
    const round = this.#round;
    let isOver = false;
    const finish = (): void => {
      if (isOver || round !== this.#round) return;
      isOver = true;
      this.#timer?.clear();
      onRead();
    };
    this.#timer = new TimeLimit(finish, maxPingMs);
    this.#ways.call(createMessage({ id: nextOwnId(), method: 'ping' }), new GatewayAnswer(finish));
  }
}
