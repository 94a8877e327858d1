import { onTestFinished } from 'vitest';
import type { Backend, BackendEnd, BackendEvents, OpenBackend, RequestIds } from '../../../src/core/backend/backend.ts';
import type { Reason } from '../../../src/core/protocol/faults.ts';
import { asMessage } from '../../support/as-message.ts';
import { createInbox, type Inbox, withDeadline } from '../../support/wait-for.ts';

/** A backend, and what it reported. */
export interface Opened {
  readonly backend: Backend;
  readonly messages: Inbox<string>;
  /** What the server will not answer. */
  readonly unanswered: Inbox<{ readonly ids: RequestIds; readonly reason: Reason }>;
  readonly ends: readonly BackendEnd[];
  send(message: object | string): ReturnType<Backend['send']>;
  end(): Promise<BackendEnd>;
}

/** Opens a backend that is closed with the test, and checks what holds for every kind: one end, and nothing after it. */
export function openBackend(open: OpenBackend, onMessages: BackendEvents['onMessages'] = () => undefined): Opened {
  const messages = createInbox<string>();
  const unanswered: Opened['unanswered'] = createInbox();
  const ends: BackendEnd[] = [];
  let tellEnd: (end: BackendEnd) => void;
  const ended = new Promise<BackendEnd>((resolve) => {
    tellEnd = resolve;
  });
  const backend = open({
    onMessages(found, of) {
      if (ends.length > 0) throw new Error('onMessages after onEnd');
      for (const { text } of found) messages.push(text.toString());
      onMessages(found, of);
    },
    onNoise: (text) => messages.push(text.toString()),
    onUnanswered(ids, reason) {
      if (ends.length > 0) throw new Error('onUnanswered after onEnd');
      unanswered.push({ ids, reason });
    },
    onEnd(end) {
      if (ends.length > 0) throw new Error('onEnd twice');
      ends.push(end);
      tellEnd(end);
    },
  });
  onTestFinished(() => backend.close());
  return {
    backend,
    messages,
    unanswered,
    ends,
    send: (message) => backend.send(asMessage(message)),
    end: () => withDeadline(ended, { what: 'the end of the backend' }),
  };
}
