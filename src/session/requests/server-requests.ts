import type { StreamTarget } from '../../call/call-table.ts';
import { readTaskUpdate, Tasks, type TaskUpdate } from '../../call/tasks.ts';
import { faultMessage, type RequestId } from '../../protocol/faults.ts';
import { spliceCancelledId, spliceId } from '../../protocol/json/splice.ts';
import type { Message } from '../../protocol/message/message.ts';
import { SparseMap } from '../../util/sparse-map.ts';

/** More questions than this from one server without an answer are a fault of the server (P8). */
const maxOpen = 1000;

interface Open {
  readonly destination: StreamTarget;
  /** The id that the server gave, as JSON text. */
  readonly serverId: RequestId;
  /** What the client's answer can tell of its tasks, and the one that is asked about. */
  readonly taskNews?: TaskUpdate | undefined;
  readonly taskId?: string | undefined;
}

/**
 * The requests of the server (sampling, elicitation, roots, ping) that its client has not answered yet. The first
 * backend's keep their ids. A later one counts from the start again, so its requests get ids of the gateway: an answer
 * to a lost backend must never be taken for one to its successor (docs/design.md, D5).
 */
export class ServerRequests {
  /** Tasks that the client has begun for its server. */
  readonly tasks = new Tasks();
  /** By the id that the client sees. */
  readonly #open = new SparseMap<RequestId, Open>();
  /** From the id that the server gave to the one that the client sees. */
  readonly #clientIds = new SparseMap<RequestId, RequestId>();
  #renamed = 0;

  /** So many wait for their client. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Takes a request that goes to the client.
   * @param incarnation which of the session's backends asks; empty for the very first one
   * @returns its text for the client; undefined if too many are open, so that it must not go out
   */
  add(message: Message, incarnation: string, destination: StreamTarget): Buffer | undefined {
    const serverId = message.id as RequestId;
    if (this.#open.size >= maxOpen) return undefined;
    const clientId = incarnation === '' ? serverId : `mcp-gangway-${incarnation}-${++this.#renamed}`;
    this.#open.set(clientId, { destination, serverId, taskNews: readTaskUpdate(message), taskId: message.taskId });
    this.#clientIds.set(serverId, clientId);
    if (destination !== 'get') destination.report?.waitsForClient();
    return clientId === serverId ? message.text : spliceId(message.text, JSON.stringify(clientId));
  }

  /** A request that an earlier owner passed on, of a backend that keeps its ids: the server still waits for its answer. */
  adopt(id: RequestId, destination: StreamTarget): void {
    if (this.#open.size >= maxOpen) return;
    this.#open.set(id, { destination, serverId: id });
    this.#clientIds.set(id, id);
    if (destination !== 'get') destination.report?.waitsForClient();
  }

  /** The client's response as its server is to see it; undefined if nothing with its id is open. */
  settle({ id, text }: Message): Buffer | undefined {
    const open = id == null ? undefined : this.#open.get(id);
    if (open === undefined || id == null) return undefined;
    this.#forget(id, open);
    if (open.destination !== 'get') open.destination.activeAt = performance.now(); // the call goes on
    if (open.taskNews !== undefined) this.tasks.answered(open.taskNews, open.taskId, text);
    return open.serverId === id ? text : spliceId(text, JSON.stringify(open.serverId));
  }

  /**
   * A cancellation by the server goes to where its request went, if that can still be reached, under the id that the
   * client knows. Undefined for anything else.
   */
  cancelledBy(message: Message): { readonly destination: StreamTarget; readonly text: Buffer } | undefined {
    const clientId = message.cancels === undefined ? undefined : this.#clientIds.get(message.cancels);
    const open = clientId === undefined ? undefined : this.#open.get(clientId);
    if (open === undefined || clientId === undefined) return undefined;
    this.#forget(clientId, open);
    const text = open.serverId === clientId ? message.text : spliceCancelledId(message.text, JSON.stringify(clientId));
    return { destination: reachable(open.destination), text };
  }

  /** The backend that asked is lost: cancellations for all its open requests, and where they go. */
  cancelAll(): { readonly destination: StreamTarget; readonly text: Buffer }[] {
    const cancelled = [...this.#open].map(([requestId, open]) => {
      this.#forget(requestId, open);
      return { destination: reachable(open.destination), text: cancellation(requestId) };
    });
    this.tasks.clear();
    return cancelled;
  }

  /** What a server gets whose request cannot go out, so that it does not wait for an answer. */
  static refusal(message: Message): Buffer {
    return Buffer.from(faultMessage('server_request_refused', message.id ?? null));
  }

  /** What a server gets that asks whether its client is there. */
  static pong({ id }: Message): Buffer {
    return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: {} }));
  }

  #forget(clientId: RequestId, { serverId, destination }: Open): void {
    if (destination !== 'get') destination.report?.settled();
    this.#open.delete(clientId);
    this.#clientIds.delete(serverId);
  }
}

/** Tells a client that a question needs no answer any more, as a rule because the server that asked was lost. */
export const cancellation = (requestId: RequestId, reason = 'The server that asked has ended.'): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason } }));

const reachable = (destination: StreamTarget): StreamTarget =>
  destination === 'get' || destination.answer.hasStream ? destination : 'get';
