import type { BackendEnd, QueuedMessage, RequestIds } from '../../backend/backend.ts';
import type { Call, CallTable } from '../../call/call-table.ts';
import type { RerunPolicy } from '../../call/rerun.ts';
import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type Message, readBody } from '../../protocol/message/message.ts';
import type { BackendSupervisor } from '../backend/supervisor.ts';
import { type ClientRequests, requestId } from './client-requests.ts';

/**
 * A call whose POST broke is sent again after this time. A server that goes away breaks its connections one after the
 * other: where the backend is lost with them, the next one is to have the call, not this one.
 */
const againMs = 500;

/** What calls without an answer need of their session. */
export interface LostCallsOptions {
  readonly calls: CallTable;
  readonly reruns: RerunPolicy;
  readonly upstream: BackendSupervisor;
  readonly inbound: ClientRequests;
  onUndeliverable(): void;
}

/** What is told of a backend that has ended by itself, to those whose calls end with it. */
export const lossReason = ({ reason }: BackendEnd): 'line_too_long' | 'memory_limit' | 'server_exited' =>
  reason === 'line_too_long' || reason === 'memory_limit' ? reason : 'server_exited';

/** What a client is told of a server that could not be started. */
export const failedStartReason = ({
  isUnauthorized = false,
}: BackendEnd): 'server_unauthorized' | 'server_start_failed' =>
  isUnauthorized ? 'server_unauthorized' : 'server_start_failed';

/** A message that a lost backend did not take. */
export interface UndeliveredMessage extends Pick<QueuedMessage, 'headers'> {
  /** As the scan read it: most of its members are getters of its class, which a copy of the object would lose. */
  readonly message: Message;
}

/** The messages that a backend did not take. */
export function readUndelivered(parcels: readonly QueuedMessage[] = []): readonly UndeliveredMessage[] {
  return parcels.flatMap(({ message, headers }) => {
    const read = readBody(Buffer.from(message), Number.POSITIVE_INFINITY);
    return read.ok ? read.messages.flatMap((each) => (each.ok ? [{ message: each.message, headers }] : [])) : [];
  });
}

/** What becomes of calls that their backend has not answered and will not answer (P3): they are run again, or end. */
export class LostCalls {
  readonly #options: LostCallsOptions;

  constructor(options: LostCallsOptions) {
    this.#options = options;
  }

  /** Ends the calls of a lost backend with what is known, but for those that the next one is to have. */
  end(reason: Reason, untaken: readonly UndeliveredMessage[]): void {
    const { calls, reruns, inbound } = this.#options;
    const kept = new Set(untaken.map(({ message }) => message.id));
    // Whose answer was too long is not known, and would be again: nothing is run again then.
    const isSafe = reason !== 'line_too_long';
    for (const call of calls.all()) {
      if (!kept.has(call.id) && !(isSafe && reruns.allows(call, 'loss'))) inbound.fail(call, reason);
    }
  }

  /**
   * Sends what the lost backend did not take, and the calls that are left, to be run again. Answers of the client are for
   * the backend that asked alone.
   */
  sendAgain(untaken: readonly UndeliveredMessage[]): void {
    const { calls } = this.#options;
    for (const { message, headers } of untaken) {
      const { kind, text, id } = message;
      const call = id == null ? undefined : calls.get(id);
      if (kind === 'request' ? call !== undefined : kind === 'notification') this.#send(text, headers, call);
    }
    for (const call of calls.all())
      if (!untaken.some(({ message }) => message.id === call.id)) this.#rerun(call, 'loss');
  }

  /** The backend goes on, and will not answer these; as `BackendEvents.onUnanswered`. */
  unanswered(ids: RequestIds, reason: Reason, isFinal = false): void {
    const { calls, reruns } = this.#options;
    const mayRunAgain = !isFinal && (reason === 'server_unreachable' || reason === 'outcome_unknown');
    for (const call of ids.map((id) => calls.get(id)).filter((found) => found !== undefined)) {
      if (mayRunAgain && reruns.allows(call, 'broken_post')) this.#rerunSoon(call);
      else this.#fail(call, reason);
    }
  }

  /** The server was away for too long for this message. */
  unsent(message: Message | undefined): void {
    const { calls, inbound, onUndeliverable } = this.#options;
    const call = message?.kind === 'request' ? calls.get(requestId(message)) : undefined;
    if (call !== undefined) inbound.fail(call, 'server_unreachable');
    else onUndeliverable();
  }

  #rerunSoon(call: Call): void {
    call.rerunAfter = 'broken_post';
    setTimeout(() => {
      const isStillDue = call.rerunAfter === 'broken_post' && call.cancelTimer === undefined;
      if (isStillDue && this.#options.calls.get(call.id) === call) this.#rerun(call, 'broken_post');
    }, againMs).unref();
  }

  #rerun(call: Call, after: NonNullable<Call['rerunAfter']>): void {
    call.rerunAfter = after;
    this.#send(call.text as Buffer, call.forwarded, call);
  }

  #send(text: Buffer, headers: ForwardedHeaders | undefined, call: Call | undefined): void {
    if (this.#options.upstream.send(text, headers) === 'full' && call !== undefined) this.#fail(call, 'server_busy');
  }

  /** A server that takes no more may have had the call before. */
  #fail(call: Call, reason: Reason): void {
    const before = call.rerunAfter === 'loss' ? 'server_exited' : 'server_unreachable';
    const mayHaveRun = call.rerunAfter !== undefined && reason === 'server_busy';
    this.#options.inbound.fail(call, mayHaveRun ? before : reason);
  }
}
