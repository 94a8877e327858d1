import type { Readable, Writable } from 'node:stream';
import type { Backend, BackendEvents, OpenBackend } from '../../../core/backend/backend.ts';
import { longestLineBytes } from '../../../core/backend/backend.ts';
import { faultMessage, type Reason, type RequestId } from '../../../core/protocol/faults.ts';
import { createMessage, type Message } from '../../../core/protocol/message/message.ts';
import { type ReadPost, readMessages } from '../../../core/protocol/message/read-messages.ts';
import { anonymous } from '../../../core/protocol/principal.ts';
import { type Era, methodNotFound } from '../../../core/protocol/revisions.ts';
import { LineSplitter } from '../../../core/protocol/wire/lines.ts';
import type { Sessions } from '../../../core/registry/sessions.ts';
import type { EventSink, EveryFact, Reply, RequestFacts } from '../../../core/reply/reply.ts';
import type { Server } from '../../../core/server/server.ts';
import { faultForEnd, type SessionEndReason } from '../../../core/session/end-reason.ts';
import type { Session } from '../../../core/session/session.ts';
import { settlesWithin } from '../../../core/util/timing/within.ts';

/** The server of a client that speaks lines, and the client's pipes. */
export interface StdioClientOptions {
  readonly server: Server;
  readonly sessions: Sessions;
  readonly maxDepth: number;
  /** Opens the server for a client of the revision without sessions; undefined if its transport has none. */
  readonly openModern: OpenBackend | undefined;
  /** Finds out the era of the server. */
  findEra(): Promise<Era | Reason>;
  /** Why this fault ends the session, and the remedy, in words for a person; undefined if nobody knows more. */
  explain(reason: Reason): string | undefined;
  /** How long open requests may take to end once the client has closed its pipe. */
  readonly drainMs: number;
  /** Aborted to end the session at once. */
  readonly leave: AbortSignal;
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
  /** Settles once the client has the answer to its `initialize`. */
  #opening: Promise<void> | undefined;
  /** Why the client cannot start; undefined once it could. */
  #startFault: Reason | undefined;
  #sessionEnd: SessionEndReason | undefined;
  /** True once the session can be listened to. */
  #isOpen = false;
  #modern: Backend | undefined;
  /** The requests of a client without sessions that are not answered, by id, with their methods. */
  readonly #unanswered = new Map<RequestId, string | undefined>();
  /** Called when one of them is answered. */
  #onAnswered = (): void => undefined;

  constructor(options: StdioClientOptions) {
    this.#options = options;
  }

  /**
   * Serves the client until it closes its pipe and has its answers, or its session cannot go on.
   * @returns why the session has ended or could never start; undefined if the client has left
   */
  async serve(): Promise<Reason | undefined> {
    const { drainMs, leave } = this.#options;
    const hasLeft = new Promise<void>((resolve) => {
      leave.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([this.#readAll(), hasLeft]);
    // A client that writes everything at once wants the answers, too.
    if (this.#sessionEnd === undefined) await settlesWithin(Promise.race([this.#whenAnswered(), hasLeft]), drainMs);
    // A client ends its session by closing the pipe, so the server shall not keep it.
    await Promise.all([this.#session?.end('deleted'), this.#modern?.close({ isForGood: true })]);
    const end = this.#sessionEnd;
    return end === undefined || end === 'deleted' ? this.#startFault : faultForEnd[end];
  }

  async #readAll(): Promise<void> {
    const { input } = this.#options;
    const lines = new LineSplitter({ maxLineBytes: longestLineBytes });
    try {
      for await (const chunk of input) {
        for (const line of lines.push(chunk as Buffer)) await this.#receive(line);
        if (lines.overflowed) this.#write(faultMessage('body_too_large', null));
        if (this.#sessionEnd !== undefined) return;
      }
      const last = lines.flush();
      if (last !== undefined) await this.#receive(last);
    } catch (cause) {
      if (!input.destroyed) throw cause; // the session has ended, or the program is about to
    }
  }

  /** One line after the other: what is read later may depend on what was sent before. */
  async #receive(line: Buffer): Promise<void> {
    const posted = await readMessages(line, this.#options.maxDepth);
    if (!posted.ok) this.#write(faultMessage(posted.reason, posted.id));
    else if (posted.modern !== undefined) await this.#sendModern(posted.modern);
    else this.#post(posted);
    // What the client has written after `initialize` stays in the pipe until then.
    await this.#opening;
  }

  /** Resolves when the client waits for no answer. A subscription has none before its end. */
  async #whenAnswered(): Promise<void> {
    await this.#session?.whenIdle();
    const isAnswered = (): boolean =>
      [...this.#unanswered.values()].every((method) => method === 'subscriptions/listen');
    if (isAnswered()) return;
    await new Promise<void>((resolve) => {
      this.#onAnswered = () => {
        if (isAnswered()) resolve();
      };
    });
  }

  #post(posted: ReadPost): void {
    const { initialize, isBatch, id } = posted;
    if (this.#session !== undefined && this.#isOpen) return this.#session.post(posted, this.#replyTo());
    if (initialize === undefined || isBatch || this.#session !== undefined) return this.#refuse('not_initialized', id);
    let onAnswered = (): void => undefined;
    this.#opening = new Promise((resolve) => {
      onAnswered = resolve;
    });
    const reply = this.#replyTo(() => {
      this.#isOpen = true;
      this.#startFault = undefined;
      this.#session?.listen(undefined, this.#replyTo());
      onAnswered();
    });
    const { server, sessions } = this.#options;
    this.#session = sessions.openConnected({ server, principal: anonymous }, initialize, reply, (reason) => {
      onAnswered();
      if (this.#isOpen || reason === 'deleted') this.#sessionEnd = reason;
      else {
        // A client whose `initialize` has failed may try again.
        this.#startFault = faultForEnd[reason];
        this.#session = undefined;
      }
    });
    if (this.#session === undefined) onAnswered();
  }

  /** Answers a request with a fault. The reader of the log is the user here, so the answer says what the log says. */
  #refuse(reason: Reason, id: RequestId | null): void {
    if (id === null) return;
    const detail = this.#options.explain(reason);
    const text = faultMessage(reason, id);
    this.#write(detail === undefined ? text : withDetail(text, detail));
  }

  #replyTo(onAccepted = (): void => undefined): Reply {
    const { output } = this.#options;
    const accepts = { json: true, sse: true };
    const facts: EveryFact = { accepts, forwarded: undefined, requestId: undefined, receivedAt: undefined };
    return {
      request: facts as RequestFacts,
      isContinued: true,
      get isGone() {
        return !output.writable;
      },
      onGone: (listener) => {
        output.once('close', listener);
      },
      answer: (answer) => {
        switch (answer.kind) {
          case 'json':
            this.#write(answer.text);
            return;
          case 'accepted':
            return onAccepted();
          case 'fault':
            return this.#refuse(answer.reason, answer.id);
          case 'removed':
          case 'nothing':
            return; // stdout has no word for it
          default:
            answer satisfies never;
        }
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
      if (era !== 'legacy' && era !== 'modern') {
        this.#startFault = era;
        return this.#refuse(era, id);
      }
      const text = `This server has no ${method}. Use initialize.`;
      this.#write(createMessage({ id, error: { code: methodNotFound, message: text } }).text);
      return;
    }
    this.#modern ??= openModern(this.#modernEvents());
    if (kind === 'request' && id !== null) this.#unanswered.set(id, method);
    const sent = this.#modern.send(message);
    if (sent !== 'sent' && id !== null && this.#settle(id))
      this.#refuse(sent === 'full' ? 'server_busy' : 'server_unreachable', id);
  }

  #modernEvents(): BackendEvents {
    const lose = (ids: Iterable<RequestId>, reason: Reason): void => {
      for (const id of ids) if (this.#settle(id)) this.#refuse(reason, id);
    };
    return {
      onMessages: (messages) => {
        for (const { id, kind, text } of messages) {
          this.#startFault = undefined;
          this.#write(text);
          if (kind === 'response' && id !== undefined && id !== null) this.#settle(id);
        }
      },
      onNoise: () => undefined,
      onUnanswered: lose,
      onEnd: () => {
        this.#modern = undefined;
        lose([...this.#unanswered.keys()], 'server_unreachable');
      },
    };
  }

  /** @returns true if the request was not answered before */
  #settle(id: RequestId): boolean {
    const isFirst = this.#unanswered.delete(id);
    if (isFirst) this.#onAnswered();
    return isFirst;
  }

  /** @returns false if the client does not keep up */
  #write(text: Buffer | string): boolean {
    const { output } = this.#options;
    if (!output.writable) return true;
    output.write(text);
    return output.write('\n');
  }
}

/** Puts what is known in the place of the hint for operators of a gateway. */
function withDetail(text: string, detail: string): string {
  const message = JSON.parse(text);
  message.error.message = `${withoutHint(message.error.message)} ${detail}`;
  return JSON.stringify(message);
}

/** The first sentence of a fault, which says what has happened. */
export const withoutHint = (message: string): string => message.split(/(?<=\.) /, 1)[0] ?? message;
