import type { BackendEvents, OpenBackend } from '../../backend/backend.ts';
import { readResponse } from '../../protocol/message/message.ts';
import { ownRequest } from '../../protocol/modern/envelope.ts';
import { type Era, modernRevisions } from '../../protocol/revisions.ts';
import { version } from '../version.ts';

/** A server that nobody has used is asked after this: most clients come before, and what they meet tells more. */
export const pingAfterMs = 3_000;

/** A server that has not answered after this is told of. */
export const silentMs = 5_000;

/** What a first question needs. */
export interface StartupPingOptions {
  readonly era: Era | 'auto';
  onAnswered(): void;
  /** It has not answered this for `silentMs`; it still may. */
  onSilent(method: string): void;
}

/** One question to the first backend of a server, which nobody has used yet. */
export interface StartupPing {
  /** Opens backends; the first one is asked. */
  readonly attach: (open: OpenBackend) => OpenBackend;
  /** Asks `askAfterMs` from now. */
  begin(): void;
  /** Somebody uses the backend: what it does is theirs to see, and it is not asked any more. */
  end(): void;
  /** The backend was asked, and has not answered; false once its end was told. */
  readonly isOpen: boolean;
}

/** No client has such an id. */
const id = 'mcp-gangway-first';

/**
 * Finds out whether a server answers at all, on a process that a client of a known era can still have afterwards: `ping` is the one request
 * that may come before `initialize` (2025-11-25, basic/lifecycle), and whatever a server of the modern era answers to it is
 * an answer too. The answer is nobody else's, also if it comes when a client has the process.
 */
export function createStartupPing({ era, onAnswered, onSilent }: StartupPingOptions): StartupPing {
  const method = era === 'modern' ? 'server/discover' : 'ping';
  let isFirst = true;
  let ask: (() => void) | undefined;
  let state: 'before' | 'asked' | 'over' = 'before';
  let timer: NodeJS.Timeout | undefined;

  const isAnswer = (line: Buffer): boolean => {
    const answered = readResponse(line)?.id;
    // Nothing else was asked, so that an error to nobody knows what is one to this.
    if (answered !== id && answered !== null) return false;
    state = 'over';
    clearTimeout(timer);
    onAnswered();
    return true;
  };
  const heard = (events: BackendEvents): BackendEvents => ({
    ...events,
    onMessages(lines, of) {
      const others = state === 'asked' ? lines.filter((line) => !isAnswer(line)) : lines;
      if (others.length > 0) events.onMessages(others, of);
    },
    onEnd(end) {
      clearTimeout(timer);
      events.onEnd(end);
      state = 'over';
    },
  });

  return {
    attach: (open) => (events, opening) => {
      if (!isFirst) return open(events, opening);
      isFirst = false;
      const backend = open(heard(events), opening);
      ask = () => {
        state = 'asked';
        timer = setTimeout(() => onSilent(method), silentMs).unref();
        backend.send(questionOf(method));
      };
      return backend;
    },
    begin() {
      timer = setTimeout(() => ask?.(), pingAfterMs).unref();
    },
    end: () => clearTimeout(timer),
    get isOpen() {
      return state === 'asked';
    },
  };
}

function questionOf(method: string): Buffer {
  if (method === 'ping') return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method }));
  const [protocolVersion] = modernRevisions.slice(-1) as [string];
  return ownRequest(id, method, {}, { version, protocolVersion });
}
