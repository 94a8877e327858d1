import type { StreamTarget } from '../../call/session-calls.ts';
import { readTaskUpdate, Tasks, type TaskUpdate } from '../../call/tasks.ts';
import type { RequestId } from '../../protocol/faults.ts';
import { mayBeOwnId, nextOwnId } from '../../protocol/ids/own-ids.ts';
import { spliceCancelledId } from '../../protocol/json.ts';
import { changedMessage, withId } from '../../protocol/message/changed-message.ts';
import { requestRefusal } from '../../protocol/message/gateway-fault.ts';
import { cancelled, type Message } from '../../protocol/message/message.ts';
import { SparseMap } from '../../util/sparse-map.ts';

/** The most open requests of one server; more are a fault of the server (P8). */
const maxOpen = 1000;

interface OpenRequest {
  readonly destination: StreamTarget;
  /** The id that the server gave. */
  readonly serverId: RequestId;
  /** The task changes that the client's answer can report, and the task that is asked about. */
  readonly taskNews?: TaskUpdate | undefined;
  readonly taskId?: string | undefined;
}

/** The cancellation of a server request, under the id that the client knows, and its destination. */
export interface CancelledRequest {
  readonly destination: StreamTarget;
  readonly cancellation: Message;
}

/**
 * The requests of the server (sampling, elicitation, roots, ping) that its client has not answered yet. Those of the
 * first backend keep their ids. A later backend counts from the start again, so its requests get numbers of the gateway.
 * An answer to a lost backend must never reach its successor (docs/design.md, D5).
 */
export class ServerRequests {
  /** Tasks that the client has begun for its server. */
  readonly tasks = new Tasks();
  /** By the id that the client sees. */
  readonly #open = new SparseMap<RequestId, OpenRequest>();
  /** Maps the server's id to the id that the client sees. */
  readonly #clientIds = new SparseMap<RequestId, RequestId>();

  /** The number of requests that wait for their client. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Adds a request that goes to the client.
   * @param incarnation identifies the session's backend; empty for the very first one
   * @returns the request as the client gets it; undefined if too many are open, so that it must not be sent
   */
  add(message: Message, incarnation: string, destination: StreamTarget): Message | undefined {
    const serverId = message.id as RequestId;
    if (this.#open.size >= maxOpen) return undefined;
    // A second client can be asked the same. One answer of both is enough.
    const known = this.#clientIds.get(serverId);
    const keepsId = incarnation === '' && !mayBeOwnId(serverId);
    const clientId = known ?? (keepsId ? serverId : nextOwnId());
    this.#note(clientId, { destination, serverId, taskNews: readTaskUpdate(message), taskId: message.taskId });
    return clientId === serverId ? message : withId(message, clientId);
  }

  /**
   * Adopts a request that an earlier owner passed on, for a backend that keeps its ids. The server still waits for the
   * answer.
   */
  adopt(id: RequestId, destination: StreamTarget): void {
    if (this.#open.size < maxOpen) this.#note(id, { destination, serverId: id });
  }

  /** The client's response in the form for its server; undefined if no such request is open. */
  settle(response: Message): Message | undefined {
    const { id, text } = response;
    const open = id == null ? undefined : this.#open.get(id);
    if (open === undefined || id == null) return undefined;
    this.#forget(id, open);
    if (open.destination !== 'get') open.destination.activeAt = performance.now(); // the call goes on
    if (open.taskNews !== undefined) this.tasks.answered(open.taskNews, open.taskId, text);
    const { serverId } = open;
    return serverId === id ? response : withId(response, serverId);
  }

  /**
   * The cancellation of a server request, under the id that the client knows, and its destination. It follows the
   * request if that destination can still be reached. Undefined for any other message.
   */
  cancelledBy(cancellation: Message): CancelledRequest | undefined {
    const { cancels, text } = cancellation;
    const clientId = cancels === undefined ? undefined : this.#clientIds.get(cancels);
    const open = clientId === undefined ? undefined : this.#open.get(clientId);
    if (open === undefined || clientId === undefined) return undefined;
    this.#forget(clientId, open);
    const destination = reachable(open.destination);
    if (open.serverId === clientId) return { destination, cancellation };
    const renamed = spliceCancelledId(text, JSON.stringify(clientId));
    return { destination, cancellation: changedMessage(cancellation, renamed, { cancels: clientId }) };
  }

  /** The backend is lost: returns cancellations for all its open requests, and their destinations. */
  cancelAll(): CancelledRequest[] {
    const cancelled = [...this.#open].map(([requestId, open]) => {
      this.#forget(requestId, open);
      return { destination: reachable(open.destination), cancellation: requestEnded(requestId) };
    });
    this.tasks.clear();
    return cancelled;
  }

  /**
   * The call is over. Returns refusals of the requests that belong to it, for the server.
   * @param isKept true for a request, by the server's id, that another client will be asked
   */
  refuseFor(call: StreamTarget, isKept: (serverId: RequestId) => boolean): readonly Message[] {
    if (this.#open.size === 0) return [];
    const requests = [...this.#open].filter(([, { destination }]) => destination === call);
    for (const [clientId, open] of requests) this.#forget(clientId, open);
    return requests
      .filter(([, { serverId }]) => !isKept(serverId))
      .map(([, { serverId: id }]) => requestRefusal({ id }));
  }

  #note(clientId: RequestId, open: OpenRequest): void {
    this.#open.set(clientId, open);
    this.#clientIds.set(open.serverId, clientId);
    if (open.destination !== 'get') open.destination.report?.waitsForClient();
  }

  #forget(clientId: RequestId, { serverId, destination }: OpenRequest): void {
    if (destination !== 'get') destination.report?.settled();
    this.#open.delete(clientId);
    this.#clientIds.delete(serverId);
  }
}

/** Tells a client that a server request needs no answer any more, because that server was lost. */
export const requestEnded = (id: RequestId): Message => cancelled(id, 'The server that sent the request has ended.');

const reachable = (destination: StreamTarget): StreamTarget =>
  destination === 'get' || destination.answer.hasStream ? destination : 'get';
