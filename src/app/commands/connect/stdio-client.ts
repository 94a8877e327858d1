import type { Readable, Writable } from 'node:stream';
import type { Backend, BackendEvents, OpenBackend } from '../../../core/backend/backend.ts';
import { longestLineBytes } from '../../../core/backend/backend.ts';
import { type ReadPost, readMessages } from '../../../core/http/pipeline/read-messages.ts';
import { faultMessage, type Reason, type RequestId } from '../../../core/protocol/faults.ts';
import { createMessage, type Message } from '../../../core/protocol/message/message.ts';
import { anonymous } from '../../../core/protocol/principal.ts';
import { type Era, methodNotFound } from '../../../core/protocol/revisions.ts';
import { LineSplitter } from '../../../core/protocol/wire/lines.ts';
import type { Sessions } from '../../../core/registry/sessions.ts';
import type { EventSink, Reply } from '../../../core/reply/reply.ts';
import type { Server } from '../../../core/server/server.ts';
import { faultForEnd, type SessionEndReason } from '../../../core/session/end-reason.ts';
import type { Session } from '../../../core/session/session.ts';

/** The server of a client that speaks lines, and the client's pipes. */
export interface StdioClientOptions {
  readonly server: Server;
  readonly sessions: Sessions;
  readonly maxDepth: number;
  /** Opens the server for a client of the revision without sessions; undefined if its transport has none. */
  readonly openModern: OpenBackend | undefined;
  /** Finds out the era of the server. */
  findEra(): Promise<Era | Reason>;
  readonly input: Readable;
  readonly output: Writable;
}

/**
 * One client that has started this program, and speaks one message a line (2025-11-25, basic/transports, "stdio"). A
 * client with `initialize` has a session, as over WebSocket: after a lost connection, the session goes on. A client
 * without sessions speaks to the server directly, in its own revision; where the server knows only older ones, its
 * `server/discover` is refused, and it falls back to `initialize`.
 */
export class StdioClient {
  readonly #options: StdioClientOptions;
  #session: Session | undefined;
  #sessionEnd: SessionEndReason | undefined;
  /** True once the session can be listened to. */
  #isOpen = false;
  #modern: Backend | undefined;
  /** The requests of a client without sessions that are not answered. */
  readonly #unanswered = new Set<RequestId>();

  constructor(options: StdioClientOptions) {
    this.#options = options;
  }

  /**
   * Serves the client until it closes its pipe, or its session cannot go on.
   * @returns why the session has ended; undefined if the client has left
   */
  async serve(): Promise<SessionEndReason | undefined> {
    const { input, maxDepth } = this.#options;
    const lines = new LineSplitter({ maxLineBytes: longestLineBytes });
    for await (const chunk of input) {
      // One line after the other: what is read later may depend on what was sent before.
      for (const line of lines.push(chunk as Buffer)) {
        const posted = await readMessages(line, maxDepth);
        if (!posted.ok) this.#write(faultMessage(posted.reason, posted.id));
        else if (posted.modern !== undefined) await this.#sendModern(posted.modern);
        else this.#post(posted);
      }
      if (lines.overflowed) this.#write(faultMessage('body_too_large', null));
      if (this.#sessionEnd !== undefined) break;
    }
    // A client ends its session by closing the pipe, so the server shall not keep it.
    await Promise.all([this.#session?.end('deleted'), this.#modern?.close({ isForGood: true })]);
    return this.#sessionEnd === 'deleted' ? undefined : this.#sessionEnd;
  }

  #post(posted: ReadPost): void {
    const { initialize, isBatch, id } = posted;
    if (this.#session !== undefined && this.#isOpen) return this.#session.post(posted, this.#replyTo());
    if (initialize === undefined || isBatch || this.#session !== undefined) return this.#refuse('not_initialized', id);
    const reply = this.#replyTo(() => {
      this.#isOpen = true;
      this.#session?.listen(undefined, this.#replyTo());
    });
    const { server, sessions } = this.#options;
    this.#session = sessions.connected.open({ server, principal: anonymous }, initialize, reply, (reason) => {
      if (this.#isOpen || reason === 'deleted') this.#sessionEnd = reason;
      // A client whose `initialize` has failed may try again.
      else this.#session = undefined;
    });
  }

  #refuse(reason: Reason, id: RequestId | null): void {
    if (id !== null) this.#write(faultMessage(reason, id));
  }

  #replyTo(onAccepted = (): void => undefined): Reply {
    const { output } = this.#options;
    return {
      request: { accepts: { json: true, sse: true } },
      isContinued: true,
      get isGone() {
        return !output.writable;
      },
      onGone: (listener) => {
        output.once('close', listener);
      },
      answer: (answer) => {
        if (answer.kind === 'json') this.#write(answer.text);
        else if (answer.kind === 'accepted') onAccepted();
        else if (answer.kind === 'fault') this.#refuse(answer.reason, answer.id);
      },
      stream: () => this.#createSink(),
    };
  }

  #createSink(): EventSink {
    const { output, input } = this.#options;
    return {
      write: (batch) => batch.messageTexts.map((text) => this.#write(text)).every(Boolean),
      onDrain: (listener) => {
        output.on('drain', listener);
      },
      onClose: (listener) => {
        output.once('close', listener);
      },
      // The session has ended, so nothing that the client writes is of use.
      end: () => {
        input.destroy();
      },
      cut: () => {
        input.destroy();
      },
    };
  }

  async #sendModern(message: Message): Promise<void> {
    const { openModern, findEra } = this.#options;
    const { id = null, kind, method } = message;
    const era = this.#modern === undefined ? await findEra() : 'modern';
    if (era !== 'modern' || openModern === undefined) {
      if (kind !== 'request' || id === null) return;
      if (era !== 'legacy' && era !== 'modern') return this.#refuse(era, id);
      const text = `This server has no ${method}. Use initialize.`;
      this.#write(createMessage({ id, error: { code: methodNotFound, message: text } }).text);
      return;
    }
    this.#modern ??= openModern(this.#modernEvents());
    if (kind === 'request' && id !== null) this.#unanswered.add(id);
    const sent = this.#modern.send(message);
    if (sent !== 'sent' && id !== null && this.#unanswered.delete(id))
      this.#refuse(sent === 'full' ? 'server_busy' : 'server_unreachable', id);
  }

  #modernEvents(): BackendEvents {
    const lose = (ids: Iterable<RequestId>, reason: Reason): void => {
      for (const id of ids) if (this.#unanswered.delete(id)) this.#refuse(reason, id);
    };
    return {
      onMessages: (messages) => {
        for (const { id, kind, text } of messages) {
          if (kind === 'response' && id !== undefined && id !== null) this.#unanswered.delete(id);
          this.#write(text);
        }
      },
      onNoise: () => undefined,
      onUnanswered: lose,
      onEnd: () => {
        this.#modern = undefined;
        lose([...this.#unanswered], 'server_unreachable');
      },
    };
  }

  /** @returns false if the client does not keep up */
  #write(text: Buffer | string): boolean {
    const { output } = this.#options;
    if (!output.writable) return true;
    output.write(text);
    return output.write('\n');
  }
}

/** Why a session could not go on, for the log. */
export const reasonOfEnd = (end: SessionEndReason): Reason => faultForEnd[end];
