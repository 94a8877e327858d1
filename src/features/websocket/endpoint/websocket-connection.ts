import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { CredentialBound, CredentialWatch } from '../../../core/auth/credential-watch.ts';
import type { Authorization } from '../../../core/auth/scopes/authorization.ts';
import { OrderedDelivery } from '../../../core/backend/in-order.ts';
import type { CallOrigin, CallTelemetry } from '../../../core/call/call-events.ts';
import { type MessagePolicy, MessageReceiver } from '../../../core/http/pipeline/receive-messages.ts';
import { reportRefusedCalls } from '../../../core/http/pipeline/refused-calls.ts';
import type { RequestTracing } from '../../../core/http/pipeline/traced-messages.ts';
import { filteringReply } from '../../../core/http/replies/filtering-reply.ts';
import { ResponseDelaySink } from '../../../core/http/replies/response-delay-sink.ts';
import type { Sender } from '../../../core/http/request-context.ts';
import { faultMessage, type Reason } from '../../../core/protocol/faults.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import type { PostedMessages, ReadPost } from '../../../core/protocol/message/read-messages.ts';
import { modernNotServedData } from '../../../core/protocol/modern/modern-not-served.ts';
import { closeCodeOf } from '../../../core/protocol/wire/close-codes.ts';
import type { RequestPermit } from '../../../core/quota/request-permit.ts';
import type { Sessions } from '../../../core/registry/sessions.ts';
import { type EventSink, faultAnswer, type Reply } from '../../../core/reply/reply.ts';
import type { Server } from '../../../core/server/server.ts';
import { faultForEnd, type SessionEndReason } from '../../../core/session/end-reason.ts';
import type { Session } from '../../../core/session/session.ts';
import { contain, detach } from '../../../core/util/boundary.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import { watchPeer } from '../websocket-peer.ts';
import { acceptsAll, type FaultArguments, type FrameConnection, FrameContext } from './frame-context.ts';
import { FrameWriter } from './frame-writer.ts';

/** Options of a connection. */
export interface WebSocketConnectionOptions {
  readonly server: Server;
  readonly sessions: Sessions;
  readonly maxDepth: number;
  readonly heartbeatMs: number;
  readonly slowReaderMs: number;
  /** The sender of the handshake, and the resources that the connection holds. */
  readonly sender: Sender;
  readonly permit: RequestPermit;
  readonly authorization: Authorization;
  /** Ends the connection when the credentials of the handshake expire. */
  readonly watch: CredentialWatch;
  /** Reports refused calls; absent if nobody wants reports. */
  readonly calls?: CallTelemetry | undefined;
  /** Creates the spans of requests; absent without tracing. */
  readonly tracePosts?: RequestTracing | undefined;
  /** How long a client may take for its first message, and between a failed `initialize` and the next. */
  readonly initializeTimeoutMs: number;
}

interface ReplyOptions {
  /** The frame that is answered; absent for the stream of the session. */
  readonly context?: FrameContext;
  onAccepted?(): void;
  readonly isContinued?: boolean;
}

/** How long a client that does not answer or read has for the close reason. */
const closeReasonGraceMs = 1_000;

/** Stands for a binary frame, which is not read. */
const notText: PostedMessages = { ok: false, reason: 'not_text', id: null };

/**
 * One client on a WebSocket (docs/decisions/0195). Its session begins with `initialize` and ends with the connection,
 * since the transport has no way to resume. Each text frame is one JSON text, like the body of a POST. All messages to
 * the client, including responses, are text frames in the order of the session.
 *
 * Every end of the connection that the gateway causes has a close code and a reason of the catalogue.
 */
export class WebSocketConnection implements MessagePolicy<FrameContext>, FrameConnection {
  readonly #peer: WebSocket;
  readonly #options: WebSocketConnectionOptions;
  readonly #writer: FrameWriter;
  readonly #receiver: MessageReceiver<FrameContext>;
  #session: Session | undefined;
  /** True once the server has answered `initialize`. */
  #isOpen = false;
  /** The reason for the session's end, once it ends. */
  #sessionEnd: SessionEndReason | undefined;
  #initializeTimer: TimeLimit | undefined;
  /** Listeners for the end of the connection. */
  readonly #goneListeners = new Set<() => void>();

  /** @param socket the socket below the WebSocket */
  constructor(peer: WebSocket, socket: Socket, options: WebSocketConnectionOptions) {
    const { heartbeatMs, slowReaderMs, sender, watch } = options;
    this.#peer = peer;
    this.#options = options;
    this.#receiver = new MessageReceiver(this, options, 'websocket');
    this.#writer = new FrameWriter(peer, { socket, slowReaderMs, onSlow: () => this.#terminate('slow_reader') });
    watchPeer(peer, { socket, intervalMs: heartbeatMs, onSilent: () => this.#terminate('client_silent') });
    const inOrder = new OrderedDelivery('request', this.#writer);
    peer.on('message', (data, isBinary) => {
      // A client that floods must not have its frames kept until the connection has ended (P8).
      if (peer.readyState !== peer.OPEN) return;
      const context = new FrameContext(this, options);
      // A frame that waits is its bytes only: it is read when the frames before it are delivered.
      const read = () => (isBinary ? notText : this.#receiver.read(context, data as Buffer));
      context.contain(() => inOrder.takeLater(read, (posted) => context.contain(() => this.#receive(context, posted))));
    });
    // a violation of the WebSocket protocol; the library closes with the matching code
    peer.on('error', () => this.#endSession());
    peer.once('close', () => contain('request', () => this.#onClosed()));
    const credentialBound: CredentialBound = {
      identity: sender.identity,
      expire: () => this.#terminate('credentials_expired'),
    };
    watch.hold(credentialBound);
    this.#goneListeners.add(() => watch.release(credentialBound));
    this.#awaitInitialize();
  }

  /**
   * Closes the connection in order, and ends its session. The client has `slowReaderMs` to read the frames sent before.
   */
  close(reason: Reason): void {
    this.#peer.resume(); // the client's close frame has to be read
    this.#peer.close(closeCodeOf(reason), reason);
    this.#endSession();
  }

  /** Ends the session: no further message of the client is expected. */
  #endSession(): void {
    this.#initializeTimer?.clear();
    detach('request', this.#session?.end('client_gone'));
  }

  #terminate(reason: Reason): void {
    this.close(reason);
    setTimeout(() => this.#peer.terminate(), closeReasonGraceMs).unref();
  }

  #awaitInitialize(): void {
    this.#initializeTimer = new TimeLimit(
      () => this.#terminate('initialize_timeout'),
      this.#options.initializeTimeoutMs,
    );
  }

  #receive(context: FrameContext, read: PostedMessages): void {
    if (this.#peer.readyState !== this.#peer.OPEN) return;
    if (read === notText) return this.close('not_text');
    this.#receiver.receive(context, read);
  }

  createReply(context: FrameContext, posted: ReadPost): Reply {
    return this.#opensSession(posted)
      ? this.#replyTo({ context, onAccepted: () => this.#onSessionOpen() })
      : this.#replyTo({ context });
  }

  dispatch(_context: FrameContext, posted: ReadPost, reply: Reply): void {
    const { modern, initialize, id } = posted;
    if (initialize !== undefined && this.#opensSession(posted)) return this.#open(initialize, reply);
    if (modern !== undefined)
      return reply.answer(faultAnswer('modern_not_served', id, { ...modernNotServedData(modern) }));
    if (this.#session !== undefined && initialize !== undefined)
      return reply.answer(faultAnswer('already_initialized', id));
    if (this.#session === undefined || !this.#isOpen) return reply.answer(faultAnswer('not_initialized', id));
    if (this.#sessionEnd !== undefined) return reply.answer(faultAnswer('session_ended', id));
    this.#session.post(posted, reply);
  }

  /** Ends refused calls with the fault; see `CallEvent`. */
  refuse(messages: readonly Message[] | undefined, ...fault: FaultArguments): void {
    const { calls, server, sender } = this.#options;
    const origin: CallOrigin = {
      server: server.name,
      era: 'legacy',
      principal: sender.identity.principal,
      session: this.#session?.name.session,
    };
    if (calls !== undefined) reportRefusedCalls(calls, origin, messages, fault[0]);
    this.#writer.reply(faultMessage(...fault));
  }

  /** A fault of the gateway has hit the connection. */
  fail(): void {
    this.#terminate('internal');
  }

  #opensSession({ modern, initialize, isBatch }: ReadPost): boolean {
    return this.#session === undefined && modern === undefined && initialize !== undefined && !isBatch;
  }

  #open(initialize: Message, reply: Reply): void {
    const { server, sender, sessions } = this.#options;
    this.#initializeTimer?.clear();
    this.#sessionEnd = undefined;
    const lookup = { server, principal: sender.principal };
    this.#session = sessions.openConnected(lookup, initialize, reply, (reason) => this.#onSessionEnd(reason));
    if (this.#session === undefined) this.#awaitInitialize();
  }

  #onSessionOpen(): void {
    this.#isOpen = true;
    // Priming events are for clients that resume.
    this.#session?.listen(undefined, this.#replyTo({ isContinued: true }));
  }

  /**
   * Handles the end of the session, whose last messages are still to come. If the session never began, the client may
   * try again.
   */
  #onSessionEnd(reason: SessionEndReason): void {
    this.#sessionEnd = reason;
    if (this.#isOpen) return;
    this.#session = undefined;
    if (reason !== 'client_gone') this.#awaitInitialize();
  }

  #onClosed(): void {
    const listeners = [...this.#goneListeners];
    this.#goneListeners.clear();
    for (const listener of listeners) contain('request', listener);
    this.#endSession();
  }

  /**
   * Creates the reply of the session to the client. Acceptance is not reported, since it is of no use on a connection.
   */
  #replyTo({ context, onAccepted = () => undefined, isContinued = false }: ReplyOptions): Reply {
    const listeners: (() => void)[] = [];
    const peer = this.#peer;
    const { authorization, sender } = this.#options;
    const reply: Reply = {
      request: context ?? { accepts: acceptsAll, forwarded: sender.forwarded },
      isContinued,
      get isGone() {
        return peer.readyState !== peer.OPEN;
      },
      onGone: (listener) => {
        listeners.push(listener);
        this.#goneListeners.add(listener);
      },
      answer: (answer) => {
        for (const listener of listeners) this.#goneListeners.delete(listener);
        context?.release();
        switch (answer.kind) {
          case 'json':
            return this.#writer.reply(answer.text);
          case 'accepted':
            return onAccepted();
          case 'fault': {
            const unreported = answer.isReported ? [] : (context?.messages ?? []);
            return this.refuse(unreported, answer.reason, answer.id, answer.data);
          }
          case 'removed':
          case 'nothing':
            return; // a connection has no word for it
          default:
            answer satisfies never;
        }
      },
      stream: () => this.#createSink(),
    };
    return filteringReply(reply, authorization.listFilter(sender.identity));
  }

  /** Creates the one stream of the session. Its events have no ids, since no client can resume here. */
  #createSink(): EventSink {
    return new ResponseDelaySink({
      write: (batch) => {
        // Only a client beyond all retained events misses some, and it must not continue without them.
        if (batch.events.some(({ kind }) => kind === 'gap')) this.#terminate('slow_reader');
        return this.#writer.send(batch.messageTexts);
      },
      onDrain: (listener) => this.#writer.onDrain(listener),
      onClose: (listener) => {
        this.#goneListeners.add(listener);
      },
      end: () => this.close(this.#sessionEnd === undefined ? 'internal' : toCloseReason(this.#sessionEnd)),
      cut: () => this.#terminate('slow_reader'),
    });
  }
}

/** Returns the close reason for a session that ended while its client was connected. */
const toCloseReason = (end: SessionEndReason): Reason => externalEnds[end] ?? faultForEnd[end];

/** Ends that were not caused by the session: its client connects again. */
const externalEnds: Partial<Record<SessionEndReason, Reason>> = {
  draining: 'draining',
  reconfigured: 'server_reconfigured',
};
