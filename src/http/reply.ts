import type { ServerResponse } from 'node:http';
import type { Accepts } from '../protocol/media-types.ts';
import { keepAliveComment } from '../protocol/sse.ts';
import type { EventSink, Headers, Reply } from '../session/reply.ts';
import { respondWithFault, respondWithJson } from './respond.ts';

/** Without it, Node.js would announce a chunked body. */
const noBody = { 'content-length': 0 };

/** A session's reply on a Node.js response. `keepAliveMs`: how often an idle stream gets a comment. */
export function createReply(outgoing: ServerResponse, accepts: Accepts, keepAliveMs: number): Reply {
  return {
    accepts,
    get isGone() {
      return outgoing.destroyed;
    },
    onGone(listener) {
      outgoing.once('close', () => {
        if (!outgoing.writableFinished) listener();
      });
    },
    json: (text, headers) => respondWithJson(outgoing, 200, text, headers),
    accepted: () => void outgoing.writeHead(202, noBody).end(),
    nothing: () => void outgoing.writeHead(204).end(),
    fault: (reason, id, data) => respondWithFault(outgoing, reason, id, data),
    stream: (headers) => openEventStream(outgoing, keepAliveMs, headers),
  };
}

/** Sends the head of an event stream and keeps the connection from looking idle. */
function openEventStream(outgoing: ServerResponse, keepAliveMs: number, headers?: Headers): EventSink {
  outgoing.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no', // nginx would hold events back
    ...headers,
  });
  outgoing.flushHeaders();
  const keepAlive = setInterval(() => {
    if (!outgoing.writableNeedDrain) outgoing.write(keepAliveComment);
  }, keepAliveMs);
  outgoing.once('close', () => clearInterval(keepAlive));
  return {
    write: (text) => outgoing.write(text),
    onDrain: (listener) => void outgoing.on('drain', listener),
    onClose: (listener) => void outgoing.once('close', listener),
    end() {
      clearInterval(keepAlive);
      outgoing.end();
    },
    cut: () => void outgoing.destroy(),
  };
}
