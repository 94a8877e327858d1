import { onTestFinished } from 'vitest';
import type { Backend, BackendEnd, BackendEvents, OpenBackend } from '../../src/backend/backend.ts';
import { createInbox, type Inbox, withDeadline } from '../support/wait-for.ts';

/** A backend, and what it reported. */
export interface Opened {
  readonly backend: Backend;
  readonly messages: Inbox<string>;
  readonly ends: readonly BackendEnd[];
  send(message: object | string): ReturnType<Backend['send']>;
  end(): Promise<BackendEnd>;
}

/** Opens a backend that is closed with the test, and checks what holds for every kind: one end, and nothing after it. */
export function openBackend(open: OpenBackend, onMessages: BackendEvents['onMessages'] = () => undefined): Opened {
  const messages = createInbox<string>();
  const ends: BackendEnd[] = [];
  let tellEnd: (end: BackendEnd) => void;
  const ended = new Promise<BackendEnd>((resolve) => {
    tellEnd = resolve;
  });
  const backend = open({
    onMessages(found) {
      if (ends.length > 0) throw new Error('onMessages after onEnd');
      for (const message of found) messages.push(message.toString());
      onMessages(found);
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
    ends,
    send: (message) => backend.send(Buffer.from(typeof message === 'string' ? message : JSON.stringify(message))),
    end: () => withDeadline(ended, { what: 'the end of the backend' }),
  };
}
