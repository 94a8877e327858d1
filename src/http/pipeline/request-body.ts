import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Reason } from '../../protocol/faults.ts';
import { joinChunks } from '../../util/join-chunks.ts';

/**
 * Reads a request's body whole, at most `maxBytes` of it. A larger one is refused by its Content-Length, or as soon as
 * it is too large. `done` is called exactly once with the body or the reason, or never if the client leaves before the
 * end of the body.
 */
export function readRequestBody(
  incoming: Readable & { readonly headers: IncomingHttpHeaders },
  maxBytes: number,
  done: (body: Buffer | Reason) => void,
): void {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) return done('body_too_large');
  const chunks: Buffer[] = [];
  let size = 0;
  let isDone = false;
  const finish = (body: Buffer | Reason): void => {
    isDone = true;
    chunks.length = 0;
    done(body);
  };
  incoming.on('data', (chunk: Buffer) => {
    if (isDone) return; // the rest after a refusal is read and discarded, so that the client can read the refusal
    size += chunk.length;
    chunks.push(chunk);
    if (size > maxBytes) finish('body_too_large');
  });
  // An abort emits only 'close'.
  incoming.on('end', () => {
    if (!isDone) finish(joinChunks(chunks, size));
  });
}
