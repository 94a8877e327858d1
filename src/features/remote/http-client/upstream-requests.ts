import type { RemoteServer } from '../../../config/config.ts';
import type { SendUpstream } from '../../../core/auth/upstream-request.ts';
import { connectTimeoutMs, type UpstreamTls } from '../../../core/backend/upstream-tls.ts';
import { parseBounded } from '../../../core/protocol/json.ts';
import { timeLimitSignal } from '../../../core/util/timing/time-limit.ts';
import { createBackpressureGroup } from './backpressure-group.ts';
import { openHttpConnection } from './http-connection.ts';
import { readJsonBody } from './json-body.ts';

/** The time limit for the answer to a request of the gateway itself, with its body (P8). */
const answerTimeoutMs = 5_000;

/** The size limit of a metadata document (P8). Usual ones have 1 KiB. */
const maxDocumentBytes = 256 * 1024;

/** More requests to one server at a time wait for a connection. */
const maxConnections = 8;

/** Sends requests over connections of their own, to which the operator's certificates for the server apply. */
export function createSend({ headers: own }: RemoteServer, { origin }: URL, tls: UpstreamTls): SendUpstream {
  const connection = openHttpConnection({ origin, headers: own, tls, connectTimeoutMs, maxConnections });
  const flow = createBackpressureGroup();
  return async ({ method, url, headers, body, readsJson = false }) => {
    const signal = timeLimitSignal(answerTimeoutMs);
    const posted = body === undefined ? {} : { body: Buffer.from(body) };
    const answer = await connection.request({ method, url, headers, ...posted, signal });
    const { status } = answer;
    if (!readsJson || status !== 200) {
      answer.body.destroy();
      return { status, headers: answer.headers };
    }
    const bytes = await readJsonBody(answer.body, flow, maxDocumentBytes);
    if (bytes === undefined) throw new Error('the document is too large');
    return { status, headers: answer.headers, json: parseBounded(bytes, maxDocumentBytes) };
  };
}
