import type { Agent } from 'undici';
import type { PolicySettings } from '../../config/servers/policy-option.ts';
import type { PolicyFailure } from '../../core/server/server-events.ts';
import { loadLibrary } from '../../core/util/load-library.ts';
import { errorCodeOf } from '../../core/util/text/error-code.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';

/** The longest question and the longest answer. A tool's result is rarely as long, and both are in memory (P8). */
export const maxPolicyBytes = 4 * 1024 * 1024;
/** Connections to one policy service. They are kept alive; further questions wait, within their time (P8). */
const maxConnections = 32;

/** The answer of a policy service, or why there is none. */
export type PolicyAnswer = Buffer | PolicyFailure;

/** Asks one policy service. */
export interface PolicyClient {
  /** Never rejects for a fault of the service. */
  ask(question: Buffer): Promise<PolicyAnswer>;
}

/** Creates the client of a policy service. Nothing is connected before the first question. */
export function createPolicyClient({ url, headers, timeoutMs }: PolicySettings): PolicyClient {
  let agent: Agent | undefined;
  const where = new URL(url).origin;
  const failure = (cause: PolicyFailure['cause'], what: string): PolicyFailure => ({
    cause,
    detail: `The policy service at ${where} ${what}.`,
  });
  const post = async (question: Buffer, signal: AbortSignal): Promise<PolicyAnswer> => {
    const undici = loadLibrary('undici');
    agent ??= new undici.Agent({ connections: maxConnections, connect: { timeout: timeoutMs } });
    const { statusCode, body } = await undici.request(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: question,
      signal,
      dispatcher: agent,
    });
    if (statusCode !== 200) {
      await body.dump();
      return failure('status', `answered with status ${statusCode} instead of 200`);
    }
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxPolicyBytes) return failure('too_large', `answered with more than ${maxPolicyBytes} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  };
  return {
    async ask(question) {
      if (question.length > maxPolicyBytes)
        return failure('too_large', `was not asked: the question has more than ${maxPolicyBytes} bytes`);
      const controller = new AbortController();
      const limit = new TimeLimit(() => controller.abort(), timeoutMs);
      try {
        // A kept connection may be closed just now. A question changes nothing, so it may be asked again.
        return await post(question, controller.signal).catch((cause: unknown) => {
          if (controller.signal.aborted || !isClosed(cause)) throw cause;
          return post(question, controller.signal);
        });
      } catch (cause) {
        if (controller.signal.aborted) return failure('slow', `did not answer within ${timeoutMs} ms`);
        const code = errorCodeOf(cause);
        return failure('unreachable', `cannot be reached (${code})`);
      } finally {
        limit.clear();
      }
    },
  };
}

/** True if a connection was closed under a request. */
const isClosed = (cause: unknown): boolean => ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'].includes(errorCodeOf(cause));
