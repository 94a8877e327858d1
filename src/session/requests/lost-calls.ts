import type { BackendEnd, QueuedMessage, RequestIds } from '../../backend/backend.ts';
import type { NoTokenReason } from '../../backend/identity/upstream-tokens.ts';
import type { Call } from '../../call/session-calls.ts';
import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { BackendSupervisor, UnsentReason } from '../backend/supervisor.ts';
import type { SessionContext } from '../session-context.ts';
import { type ClientRequests, requestId } from './client-requests.ts';

/**
 * The delay before a call with a broken POST is sent again. A server that stops breaks its connections one after the
 * other. If the backend is lost with them, its replacement gets the call.
 */
const resendDelayMs = 500;

/** The reason given to calls that end with a lost backend. */
export const lossReason = ({ reason }: BackendEnd): 'line_too_long' | 'memory_limit' | 'server_exited' =>
  reason === 'line_too_long' || reason === 'memory_limit' ? reason : 'server_exited';

/** The reason given to a client whose server could not be started. */
export const failedStartReason = ({
  isUnauthorized = false,
  noToken,
}: BackendEnd): 'server_unauthorized' | 'server_start_failed' | NoTokenReason =>
  noToken ?? (isUnauthorized ? 'server_unauthorized' : 'server_start_failed');

/** Decides about calls that their backend will not answer (P3): they run again, or end. */
export class LostCalls {
  readonly #context: SessionContext;
  readonly #supervisor: BackendSupervisor;
  readonly #requests: ClientRequests;

  constructor(context: SessionContext, supervisor: BackendSupervisor, requests: ClientRequests) {
    this.#context = context;
    this.#supervisor = supervisor;
    this.#requests = requests;
  }

  /** Ends the calls of a lost backend with the known outcome, except those that its replacement gets. */
  end(reason: Reason, undelivered: readonly QueuedMessage[]): void {
    const { calls, reruns } = this.#context;
    const undeliveredIds = new Set(undelivered.map(({ message }) => message.id));
    // The call with the overlong answer is unknown and would fail again, so no call is run again.
    const isSafe = reason !== 'line_too_long';
    for (const call of calls.all()) {
      if (!undeliveredIds.has(call.id) && !(isSafe && reruns.allows(call, 'loss'))) this.#requests.fail(call, reason);
    }
  }

  /**
   * Sends the undelivered messages again and reruns the remaining calls. Responses of the client are dropped, since
   * they belong to the lost backend.
   */
  sendAgain(undelivered: readonly QueuedMessage[]): void {
    const { calls } = this.#context;
    for (const { message, headers } of undelivered) {
      const { kind, id } = message;
      const call = calls.get(id);
      // The restore replays `initialized` itself.
      const isNotification = kind === 'notification' && message.method !== 'notifications/initialized';
      if (kind === 'request' ? call !== undefined : isNotification) this.#send(message, headers, call);
    }
    for (const call of calls.all())
      if (!undelivered.some(({ message }) => message.id === call.id)) this.#rerun(call, 'loss');
  }

  /** The backend goes on without answering these requests; as `BackendEvents.onUnanswered`. */
  unanswered(ids: RequestIds, reason: Reason, isFinal = false): void {
    const { calls, reruns } = this.#context;
    const mayRunAgain = !isFinal && (reason === 'server_unreachable' || reason === 'outcome_unknown');
    for (const call of ids.map((id) => calls.get(id)).filter((found) => found !== undefined)) {
      if (mayRunAgain && reruns.allows(call, 'broken_post')) this.#rerunSoon(call);
      else this.#fail(call, reason);
    }
  }

  /** The server, or the store, was away for too long for this message. A call that runs again may have run before. */
  unsent(message: Message, reason: UnsentReason): void {
    const call = message.kind === 'request' ? this.#context.calls.get(requestId(message)) : undefined;
    if (call !== undefined) this.#requests.fail(call, call.rerunAfter === undefined ? reason : 'server_unreachable');
    else this.#context.drop('undeliverable');
  }

  #rerunSoon(call: Call): void {
    call.rerunAfter = 'broken_post';
    setTimeout(() => {
      const isStillDue = call.rerunAfter === 'broken_post' && call.cancelTimer === undefined;
      if (isStillDue && this.#context.calls.holds(call)) this.#rerun(call, 'broken_post');
    }, resendDelayMs).unref();
  }

  #rerun(call: Call, after: NonNullable<Call['rerunAfter']>): void {
    call.rerunAfter = after;
    this.#send(call.request as Message, call.forwarded, call);
  }

  #send(message: Message, headers: ForwardedHeaders | undefined, call: Call | undefined): void {
    if (this.#supervisor.send(message, headers) === 'full' && call !== undefined) this.#fail(call, 'server_busy');
  }

  /** A server that takes no more messages may have received the call before. */
  #fail(call: Call, reason: Reason): void {
    const before = call.rerunAfter === 'loss' ? 'server_exited' : 'server_unreachable';
    const mayHaveRun = call.rerunAfter !== undefined && reason === 'server_busy';
    this.#requests.fail(call, mayHaveRun ? before : reason);
  }
}
