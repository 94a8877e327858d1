import { type Handshake, readHandshake } from '../../core/protocol/handshake.ts';
import { scalarAt } from '../../core/protocol/json.ts';
import { serverInfoKey } from '../../core/protocol/modern/envelope.ts';

/** What a server has said of itself: `Implementation` in the schema of MCP. */
export interface ServerInfo {
  readonly name: string | undefined;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly version: string | undefined;
  /** The revision of a legacy server; undefined for a modern one. */
  readonly protocolVersion: Handshake['protocolVersion'] | undefined;
}

/** An answer is read no more often than this: a client can open sessions at any rate (P8). */
const readAtMostEveryMs = 60_000;

/** The newest answer of a server to `initialize` or `server/discover`, for a server card. */
export class Introduction {
  #readAt = Number.NEGATIVE_INFINITY;
  #info: ServerInfo | undefined;

  /** Undefined while no client has reached the server through this instance. */
  get info(): ServerInfo | undefined {
    return this.#info;
  }

  /** Reads a successful answer. */
  note(answer: Buffer): void {
    const now = performance.now();
    if (now - this.#readAt < readAtMostEveryMs) return;
    this.#readAt = now;
    const handshake = readHandshake(answer);
    const place = handshake === undefined ? ['result', '_meta', serverInfoKey] : ['result', 'serverInfo'];
    const textOf = (member: keyof ServerInfo): string | undefined => {
      const value = scalarAt(answer, [...place, member]);
      return typeof value === 'string' && value !== '' ? value : undefined;
    };
    this.#info = {
      name: textOf('name'),
      title: textOf('title'),
      description: textOf('description'),
      version: textOf('version'),
      protocolVersion: handshake?.protocolVersion,
    };
  }
}
