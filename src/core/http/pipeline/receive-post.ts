import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Reason } from '../../protocol/faults.ts';
import { isJsonContentType } from '../../protocol/http/media-types.ts';
import { joinChunks } from '../../protocol/wire/join-chunks.ts';
import type { HttpContext } from '../http-context.ts';
import type { MessageReceiver } from './receive-messages.ts';

/**
 * Reads the body of a POST and hands it to the receiver, unless the client leaves before its end. A body that cannot be
 * received is refused.
 * @param isAcceptable false if the client accepts no form of response that exists
 */
export function receivePost(
  context: HttpContext,
  maxBodyBytes: number,
  isAcceptable: boolean,
  receiver: MessageReceiver<HttpContext>,
): void {
  const refusedReason = findHeaderFault(context.headers) ?? (isAcceptable ? undefined : 'not_acceptable');
  if (refusedReason !== undefined) return context.refuse({ reason: refusedReason });
  readRequestBody(context.incoming, maxBodyBytes, (body) => {
    context.contain(() => {
      if (typeof body === 'string') return context.refuse({ reason: body });
      context.receivedAt = performance.now();
      const read = receiver.read(context, body);
      if (!(read instanceof Promise)) return receiver.receive(context, read);
      return read.then((messages) => {
        // A client that leaves cancels its request of 2026-07-28, but not its messages of a session (P4).
        const isCancelled = context.outgoing.destroyed && messages.ok && messages.modern !== undefined;
        if (!isCancelled) receiver.receive(context, messages);
      });
    });
  });
}

/** Returns the reason to refuse a POST by its headers alone, before its body is read. */
export function findHeaderFault(headers: IncomingHttpHeaders): Reason | undefined {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return 'encoded_body';
  return isJsonContentType(headers['content-type']) ? undefined : 'bad_content_type';
}

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
