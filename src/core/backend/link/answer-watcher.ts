import type { Reason, RequestId } from '../../protocol/faults.ts';
import { createFaultResponse } from '../../protocol/message/gateway-fault.ts';
import type { Message } from '../../protocol/message/message.ts';
import { contain, detach } from '../../util/boundary.ts';
import type { BackendEnd, RequestIds, Sent } from '../backend.ts';
import { HeldBytes } from '../held-bytes.ts';
import { maxWaitingBytes } from '../waiting-budget.ts';
import { Interceptor } from './link.ts';

/**
 * Remembers something of requests at the server until they are answered, or will not be. It can keep an answer until
 * something outside of the gateway has answered, and can answer in place of the server. Everything else of the server goes
 * on meanwhile, but the server is not read while too many bytes wait (P8). Its end is told after the answers.
 */
export abstract class AnswerWatcher<Noted> extends Interceptor {
  readonly #noted = new Map<RequestId, Noted>();
  #heldCount = 0;
  #heldBytes: HeldBytes | undefined;
  #isFull = false;
  #end: BackendEnd | undefined;

  /** The number of requests that are remembered. */
  protected get watched(): number {
    return this.#noted.size;
  }

  protected get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Remembers something of a request. */
  protected note(request: Message, noted: Noted): void {
    this.#noted.set(request.id as RequestId, noted);
  }

  /** Returns what was remembered, if anything was. */
  protected forget(id: RequestId): Noted | undefined {
    const noted = this.#noted.get(id);
    if (noted !== undefined) this.#noted.delete(id);
    return noted;
  }

  /** A request is answered. Returns what goes on now; undefined if nothing does. */
  protected abstract onAnswer(answer: Message, noted: Noted, related: RequestIds | undefined): Message | undefined;

  /** A request is not answered. `isSent`: the server had it. */
  protected onLost?(noted: Noted, why: string, isSent: boolean): void;

  /** Forgets a request that nobody waits for any more. */
  protected lose(id: RequestId, why: string, isSent = true): void {
    const noted = this.forget(id);
    if (noted !== undefined) this.onLost?.(noted, why, isSent);
  }

  override onSent({ kind, id }: Message, result: Sent): void {
    if (result === 'sent' || kind !== 'request') return;
    this.lose(id as RequestId, result === 'full' ? 'server_busy' : 'server_exited', false);
  }

  override onMessages(messages: readonly Message[], related: RequestIds | undefined): readonly Message[] {
    if (this.#noted.size === 0) return messages;
    let changed: Message[] | undefined;
    for (let index = 0; index < messages.length; index += 1) {
      const message = messages[index] as Message;
      const noted = message.kind === 'response' && message.id != null ? this.forget(message.id) : undefined;
      const passed = noted === undefined ? message : this.onAnswer(message, noted, related);
      if (passed !== message) changed ??= messages.slice(0, index);
      if (passed !== undefined) changed?.push(passed);
    }
    return changed ?? messages;
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void {
    for (const id of ids) this.lose(id, reason);
    this.passUnanswered(ids, reason, isFinal);
  }

  override onEnd(end: BackendEnd): void {
    this.#end = end;
    this.#passEndWhenDone();
  }

  override onOver({ reason }: BackendEnd): void {
    for (const id of [...this.#noted.keys()]) this.lose(id, `server_${reason}`);
    if (this.#heldBytes !== undefined) this.#heldBytes.bytes = 0;
  }

  /**
   * Keeps an answer.
   * @param later resolves with what goes on
   * @param reason the fault that goes on if it rejects
   */
  protected keep(answer: Message, related: RequestIds | undefined, later: Promise<Message>, reason: Reason): void {
    const bytes = answer.text.length;
    this.#heldCount += 1;
    this.#noteHeld(bytes);
    const settle = (passed: Message): void => {
      this.#heldCount -= 1;
      this.#noteHeld(-bytes);
      contain('backend', () => this.passMessages([passed], related));
      contain('backend', () => this.#passEndWhenDone());
    };
    detach('backend', later.then(settle), () => settle(createFaultResponse(reason, answer.id as RequestId)));
  }

  /** Answers a request in place of the server, outside of the call that brought it. */
  protected answer(response: Message): void {
    queueMicrotask(() => contain('backend', () => this.passMessages([response])));
  }

  #passEndWhenDone(): void {
    if (this.#end !== undefined && this.#heldCount === 0) this.passEnd(this.#end);
  }

  #noteHeld(change: number): void {
    this.#heldBytes ??= new HeldBytes();
    this.#heldBytes.bytes = Math.max(0, this.#heldBytes.bytes + change);
    const isFull = this.#heldBytes.bytes > maxWaitingBytes;
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    if (isFull) this.hold();
    else this.release();
  }
}
