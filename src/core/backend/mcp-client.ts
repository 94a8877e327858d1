import type { Reason, RequestId } from '../protocol/faults.ts';
import { initializeRequest } from '../protocol/handshake.ts';
import { type ForwardedHeaders, noHeaders } from '../protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../protocol/ids/own-ids.ts';
import { createMessage, emptyResult, type Message } from '../protocol/message/message.ts';
import { discoverRequest, type OwnClient, ownRequest } from '../protocol/modern/envelope.ts';
import { type Era, methodNotFound } from '../protocol/revisions.ts';
import type { Backend, BackendEnd, BackendEvents, CloseOptions, RequestIds } from './backend.ts';
import { type OwnAnswer, OwnRequests } from './own-requests.ts';

/** What the user of a client may want to know besides the answers. */
export interface McpClientListener {
  /** As in `BackendEvents`. */
  onNoise?(text: Buffer): void;
  onEnd?(end: BackendEnd): void;
}

/**
 * The gateway as an MCP client of a server: in both eras, without capabilities. It answers the pings of the server, since
 * some servers wait for that before they go on, and refuses its other requests. Notifications are ignored.
 */
export class McpClient implements BackendEvents {
  readonly backend: Backend;
  readonly #client: OwnClient;
  readonly #listener: McpClientListener;
  readonly #requests = new OwnRequests();
  readonly #headers: ForwardedHeaders;
  #end: BackendEnd | undefined;

  /**
   * @param headers go with each message, on transports that send headers: those of the client for whom the gateway asks
   */
  constructor(
    open: (events: BackendEvents) => Backend,
    client: OwnClient,
    listener: McpClientListener = {},
    headers: ForwardedHeaders = noHeaders,
  ) {
    this.#client = client;
    this.#listener = listener;
    this.#headers = headers;
    this.backend = open(this);
  }

  /** The end of the backend, once it has ended. */
  get end(): BackendEnd | undefined {
    return this.#end;
  }

  /** The ids of requests that the server may still answer. */
  get openIds(): ReadonlySet<RequestId> {
    return this.#requests.ids;
  }

  /** Sends `initialize`. */
  initialize(limitMs?: number): Promise<OwnAnswer> {
    return this.#send(initializeRequest(nextOwnId(), this.#client.version), limitMs);
  }

  /** Sends `server/discover`. */
  discover(limitMs?: number): Promise<OwnAnswer> {
    return this.#send(discoverRequest(nextOwnId(), this.#client), limitMs);
  }

  /** Sends a request of an era. In the modern one, it has its envelope. */
  request(
    era: Era,
    method: string,
    params: Readonly<Record<string, unknown>>,
    limitMs?: number,
    client = this.#client,
  ): Promise<OwnAnswer> {
    const id = nextOwnId();
    return this.#send(
      era === 'legacy' ? createMessage({ id, method, params }) : ownRequest(id, method, params, client),
      limitMs,
    );
  }

  notify(method: string): void {
    this.backend.send(createMessage({ method }), this.#headers);
  }

  close(how?: CloseOptions): Promise<void> {
    return this.backend.close(how);
  }

  onMessages(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.kind === 'response') this.#requests.answer(message);
      else if (message.kind === 'request' && !this.#requests.takeEcho(message))
        this.backend.send(answerOf(message), this.#headers);
    }
  }

  onNoise(text: Buffer): void {
    this.#listener.onNoise?.(text);
  }

  onUnanswered(ids: RequestIds, reason: Reason): void {
    for (const id of ids) this.#requests.lose(id, reason);
  }

  onEnd(end: BackendEnd): void {
    this.#end = end;
    this.#listener.onEnd?.(end);
    this.#requests.end(end);
  }

  #send(request: Message, limitMs: number | undefined): Promise<OwnAnswer> {
    if (this.#end !== undefined) return Promise.resolve({ kind: 'ended', end: this.#end });
    return this.#requests.send(request, (message) => this.backend.send(message, this.#headers), limitMs);
  }
}

/** The answer of a client without capabilities. */
function answerOf({ id, method }: Message): Message {
  if (method === 'ping') return emptyResult({ id });
  return createMessage({ id, error: { code: methodNotFound, message: 'Method not found' } });
}
