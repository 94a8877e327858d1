import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HttpContext } from '../../../core/http/http-context.ts';
import { endIfUnanswered } from '../../../core/http/malformed-requests.ts';
import type { Refusal } from '../../../core/http/request-context.ts';
import type { RequestPermit } from '../../../core/quota/request-permit.ts';

/** Ends a connection whose client has left. The function keeps no context alive while a WebSocket is open. */
function endConnection(this: Socket): void {
  this.destroy();
}

/** A request that wants its connection to become a WebSocket. Its response is used only if that is refused. */
export class UpgradeContext extends HttpContext {
  readonly socket: Socket;
  /** The bytes behind the request. */
  readonly head: Buffer;

  constructor(incoming: IncomingMessage, socket: Socket, head: Buffer) {
    super(incoming, new ServerResponse(incoming));
    this.outgoing.shouldKeepAlive = false;
    this.socket = socket;
    this.head = head;
    socket.on('error', endConnection);
  }

  /** Holds the permit until the connection is closed. */
  override hold(permit: RequestPermit): void {
    this.permit = permit;
    this.socket.once('close', () => permit.release());
  }

  /** Answers the request, which does not become a WebSocket, and ends its connection. */
  override refuse(refusal: Refusal): void {
    const { outgoing, socket } = this;
    if (endIfUnanswered(socket)) return; // no answer may come before that to the earlier request
    if (refusal.reason === 'bad_handshake') outgoing.setHeader('sec-websocket-version', '13'); // RFC 6455, section 4.4
    outgoing.assignSocket(socket);
    outgoing.once('finish', () => socket.destroySoon());
    super.refuse(refusal);
  }

  override fail(): void {
    this.socket.destroy();
  }
}
