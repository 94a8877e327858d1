import { readHandshake } from '../../../core/protocol/handshake.ts';
import { sessionRevision } from '../../../core/protocol/known-revisions.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { mirroredHeaders } from '../../../core/protocol/modern/mirrored-headers.ts';
import type { HttpResponse } from '../http-client/http-connection.ts';
import type { ResumeState } from './resume-state.ts';

/**
 * Longer ids are refused: each request would be as long. Gateways as servers put the sessions of all their own servers
 * into one id, so ids of some kilobytes exist. Node.js servers refuse request heads of more than 16 KiB.
 */
const maxIdLength = 14 * 1024;
const idHeader = 'mcp-session-id';

/**
 * The gateway's session at a server: the session id from the answer to `initialize`, if any, and the negotiated
 * revision. See 2025-11-25, basic/transports, "Session Management" and "Protocol Version Header". The id opens the
 * session: it is never shown (P12).
 */
export class ServerSession {
  #id: string | undefined;
  #version: string | undefined;
  #headers: Readonly<Record<string, string>> = {};

  /** Continues a session that another backend began. */
  resume({ id, version }: Pick<ResumeState, 'id' | 'version'>): void {
    this.#id = id;
    this.#version = version;
    this.#changed();
  }

  /** The state for `resume`. */
  get state(): Pick<ResumeState, 'id' | 'version'> {
    return { id: this.#id, version: this.#version };
  }

  get hasId(): boolean {
    return this.#id !== undefined;
  }

  /** The server has answered `initialize`. */
  get hasBegun(): boolean {
    return this.#version !== undefined;
  }

  /** Sent with a message from now on: those of every request, and those with which the revision mirrors the message. */
  headersOf(message: Message): Readonly<Record<string, string>> {
    const revision = this.#version === undefined ? undefined : sessionRevision(this.#version);
    const isMirrored = revision?.headers.some(({ mirrors }) => mirrors !== 'revision');
    return revision !== undefined && isMirrored
      ? { ...mirroredHeaders(message, revision), ...this.#headers }
      : this.#headers;
  }

  /** Sent with every request from now on. */
  get headers(): Readonly<Record<string, string>> {
    return this.#headers;
  }

  /**
   * Takes the session id from the head of the answer to `initialize`; an empty one means no session. Returns the problem
   * with it, if there is one.
   */
  begin({ headers }: HttpResponse): string | undefined {
    const id = headers[idHeader];
    if (id === undefined || id === '') return undefined;
    if (typeof id !== 'string') return 'sent two session ids';
    if (id.length > maxIdLength) return `gave a session id of more than ${maxIdLength} characters`;
    if (!/^[\x21-\x7e]+$/.test(id)) return 'gave a session id that is not visible ASCII';
    this.#id = id;
    this.#changed();
    return undefined;
  }

  /**
   * Takes the session id from the head of any later answer: some servers name the session late, or give it another id with
   * each answer. Official SDKs follow both. Returns true if the id is another one.
   */
  renew(answer: HttpResponse): boolean {
    const former = this.#id;
    return this.begin(answer) === undefined && this.#id !== former;
  }

  /** Takes the revision from the response to `initialize`. A revision that no header can hold is not sent. */
  agree(response: Buffer): void {
    const version = readHandshake(response)?.protocolVersion;
    if (version === undefined || !/^[\x21-\x7e]{1,64}$/.test(version)) return;
    this.#version = version;
    this.#changed();
  }

  #changed(): void {
    this.#headers = {
      ...(this.#id !== undefined && { [idHeader]: this.#id }),
      ...(this.#version !== undefined && { 'mcp-protocol-version': this.#version }),
    };
  }
}
