import type { BackendEnd, QueuedMessage, RequestIds } from '../backend/backend.ts';
import type { Call } from '../call/session-calls.ts';
import type { Reason } from '../protocol/faults.ts';
import { declaredListChanges, type Handshake } from '../protocol/handshake.ts';
import { mayBeOwnId } from '../protocol/ids/own-ids.ts';
import type { Message } from '../protocol/message/message.ts';
import { isClientRefused } from '../server/server.ts';
import { CheckpointKeeper } from './backend/checkpoint.ts';
import { BackendSupervisor, type SupervisorListener, type UnsentReason } from './backend/supervisor.ts';
import type { SessionEndReason } from './end-reason.ts';
import type { ServerOutput } from './events/backpressure.ts';
import { EventDelivery, type OutputReceiver } from './events/delivery.ts';
import { OneStream } from './events/one-stream.ts';
import type { Adoption } from './record/adoption.ts';
import { Attribution } from './requests/attribution.ts';
import { ClientRequests } from './requests/client-requests.ts';
import { failedStartReason, LostCalls, lossReason } from './requests/lost-calls.ts';
import { requestEnded } from './requests/server-requests.ts';
import type { SessionContext } from './session-context.ts';
import { SessionOpening } from './session-opening.ts';

/** How long a session that is not restored stays, so that clients can learn the outcome of their calls. */
const collectMs = 3_000;

/**
 * The way of messages between a client and its server. Client messages go to the backend as they come
 * (`ClientRequests`). Server messages go to their answer or stream (`Attribution`) through the event log
 * (`EventDelivery`). A lost backend is restored (`BackendSupervisor`), also after the loss of its instance.
 */
export class SessionPipeline implements OutputReceiver, SupervisorListener {
  readonly delivery: EventDelivery;
  readonly supervisor: BackendSupervisor;
  readonly requests: ClientRequests;
  readonly opening: SessionOpening;
  readonly #context: SessionContext;
  readonly #lostCalls: LostCalls;
  readonly #attribution: Attribution;
  readonly #checkpoint: CheckpointKeeper;
  /** Ends a session that is not restored. */
  #endTimer: NodeJS.Timeout | undefined;

  constructor(context: SessionContext) {
    this.#context = context;
    this.supervisor = new BackendSupervisor(context, this);
    this.delivery = new EventDelivery(context, this.supervisor, this);
    const oneStream = context.policy.hasOneStream ? new OneStream(context, this.delivery) : undefined;
    this.requests = new ClientRequests(context, this.supervisor, this.delivery, oneStream);
    this.opening = new SessionOpening(context, this.supervisor, this.delivery, this.requests, oneStream);
    this.#attribution = new Attribution(context, this.supervisor, this.delivery, this.opening);
    this.#checkpoint = new CheckpointKeeper(context, this.delivery, this.supervisor);
    this.#lostCalls = new LostCalls(context, this.supervisor, this.requests);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    this.delivery.take(messages.map((message) => ({ message, relatedRequests })));
  }

  onNoise(text: Buffer, more = 0): void {
    this.#context.drop('noise', text, 1 + more);
  }

  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    this.delivery.finish(); // earlier messages of the server come first
    this.#lostCalls.unanswered(ids, reason, isFinal);
  }

  onState(state: string): void {
    this.delivery.take([{ state }]);
  }

  onUnsent(message: Message, reason: UnsentReason): void {
    this.#lostCalls.unsent(message, reason);
  }

  /** Routes what the backend reported. */
  receive(output: ServerOutput): void {
    if ('state' in output) this.#checkpoint.note(output.state);
    else this.#attribution.receive(output.message, output.relatedRequests);
  }

  /**
   * Continues a session whose owner was lost. If the server's session outlives a connection, that session is resumed.
   * Otherwise unanswered calls are answered, or run again by a new server.
   */
  adopt({ calls, serverRequests, afterCheckpoint, forwarded }: Adoption, handshake: Handshake): void {
    const context = this.#context;
    const { client, parts } = context;
    context.handshake = handshake;
    if (forwarded !== undefined) this.supervisor.rememberHeaders(forwarded);
    const checkpoint = client.backend;
    if (checkpoint !== undefined) {
      const adopted = this.requests.adopt(calls);
      this.#adoptServerRequests(serverRequests, adopted, checkpoint.isFirst);
      this.delivery.open();
      this.supervisor.attach(
        { state: checkpoint.state, pending: adopted.map(({ id }) => id), delivered: afterCheckpoint },
        checkpoint.isFirst,
      );
      return;
    }
    for (const { stream, id } of serverRequests) this.delivery.add(stream, requestEnded(id).text, false);
    for (const call of this.requests.adopt(calls)) {
      if (!context.reruns.allows(call, 'loss')) this.requests.fail(call, 'outcome_unknown');
    }
    this.delivery.open();
    const { onBackendExit, hibernateAfterMs } = parts.server;
    const isNeeded = context.calls.size > 0 || client.expectsServer;
    // The state in the lost process is gone, and the client has to know (docs/design.md, D5). The end is delayed, so
    // that clients can first fetch the answers that are in the log.
    if (onBackendExit === 'end') this.#endTimer = setTimeout(() => context.end('server_exited'), collectMs).unref();
    // A lost instance may leave thousands of sessions whose clients only listen.
    else if (hibernateAfterMs !== undefined && !isNeeded) this.supervisor.hibernate();
    else this.#restore([]);
  }

  /** The session ends. Requests that wait at a gate have not reached its server. */
  close(reason: SessionEndReason): void {
    clearTimeout(this.#endTimer);
    this.opening.close();
    this.requests.close(reason);
  }

  /** See `Session.detachClients`. */
  detachClients(openForMs: number): void {
    this.delivery.streams.detachClients(openForMs);
  }

  /**
   * The backend has ended by itself. Calls that can be run again wait for the next backend. The others end now with the
   * known outcome (P3).
   */
  onLost(end: BackendEnd): void {
    const { parts, name, handshake, calls, serverRequests } = this.#context;
    const isRefused = handshake === undefined && isClientRefused(end, parts.server);
    if (!isRefused) parts.telemetry.emit({ type: 'backend-ended', name, end, isAtStart: handshake === undefined });
    this.delivery.finish();
    calls.tasks.clear();
    this.#checkpoint.forget();
    const reason = lossReason(end);
    if (isRefused) this.#context.end('client_unauthorized');
    else if (handshake === undefined) this.#context.end(failedStartReason(end));
    else if (parts.server.onBackendExit === 'end') this.#context.end(reason);
    else {
      // Cancellations come first, while the stream of each server request can still be found.
      for (const { destination, cancellation } of serverRequests.cancelAll())
        this.#attribution.send(destination, cancellation);
      const { undelivered = [] } = end;
      this.#context.earlyRoots?.noteLost();
      this.#lostCalls.end(reason, undelivered);
      this.delivery.flush();
      this.#restore(undelivered);
    }
  }

  /** Starts the server again. Undelivered messages and reruns are queued before new messages of the client. */
  #restore(undelivered: readonly QueuedMessage[]): void {
    this.supervisor.restore();
    for (const { report } of this.#context.calls.all()) report?.awaitsStart();
    this.#lostCalls.sendAgain(undelivered);
  }

  /**
   * Restores the server's open requests, if they had their own ids, and those cannot be confused with ids of another
   * backend. Other requests are cancelled.
   */
  #adoptServerRequests(serverRequests: Adoption['serverRequests'], calls: readonly Call[], isFirst: boolean): void {
    for (const { stream, id } of serverRequests) {
      const call = calls.find(({ answer }) => answer.stream === stream);
      if (isFirst && !mayBeOwnId(id)) this.#context.serverRequests.adopt(id, call ?? 'get');
      else this.delivery.add(stream, requestEnded(id).text, false);
    }
  }

  /** The new backend has replaced the lost one. The client is told to refresh its lists. */
  onRestored(): void {
    const { parts, name, calls, handshake } = this.#context;
    for (const { report } of calls.all()) report?.started();
    this.#context.earlyRoots?.reset();
    this.#attribution.reportReplacement(declaredListChanges(handshake as Handshake));
    this.delivery.flush();
    const { pid, restoration } = this.supervisor;
    parts.telemetry.emit({ type: 'backend-restored', name, pid, restoration });
  }
}
