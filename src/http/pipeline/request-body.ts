import type { IncomingMessage } from 'node:http';
import type { Reason } from '../../protocol/faults.ts';
import { joinChunks } from '../../util/join-chunks.ts';

/** The result of reading a body; `aborted` if the client left before its end, so that no answer is possible. */
export type RequestBody =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly reason: Reason | 'aborted' };

/**
 * Reads a request's body whole, at most `maxBytes` of it. A larger one is refused by its Content-Length, or as soon as
 * it is too large. `done` is called exactly once.
 */
export function readRequestBody(incoming: IncomingMessage, maxBytes: number, done: (body: RequestBody) => void): void {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) {
    done({ ok: false, reason: 'body_too_large' });
    return;
  }
  const chunks: Buffer[] = [];
  let size = 0;
  let isDone = false;
  const finish = (body: RequestBody): void => {
    if (isDone) return;
    isDone = true;
    chunks.length = 0;
    done(body);
  };
  incoming.on('data', (chunk: Buffer) => {
    if (isDone) return; // the rest after a refusal is read and discarded, so that the client can read the refusal
    size += chunk.length;
    chunks.push(chunk);
    if (size > maxBytes) finish({ ok: false, reason: 'body_too_large' });
  });
  incoming.on('end', () => {
    finish({ ok: true, bytes: joinChunks(chunks, size) });
  });
  // An abort emits no 'error' without a listener for it, and is followed by 'close'.
  incoming.on('close', () => finish({ ok: false, reason: 'aborted' }));
}
