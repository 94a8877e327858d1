import type { PolicySettings } from '../../config/options/policy-option.ts';
import type { PolicyFailure } from '../../core/ops/server-events.ts';
import { createServiceClient, NoServiceAnswer } from '../../core/protocol/http/service-client.ts';
import { errorCodeOf } from '../../core/util/text/error-code.ts';

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
  const service = createServiceClient({ timeoutMs, maxBytes: maxPolicyBytes, maxConnections });
  const where = new URL(url).origin;
  const failure = (cause: PolicyFailure['cause'], what: string): PolicyFailure => ({
    cause,
    detail: `The policy service at ${where} ${what}.`,
  });
  const request = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } } as const;
  return {
    async ask(question) {
      if (question.length > maxPolicyBytes)
        return failure('too_large', `was not asked: the question has more than ${maxPolicyBytes} bytes`);
      try {
        const { status, body } = await service(url, { ...request, body: question, isRepeatable: true });
        return status === 200 ? body : failure('status', `answered with status ${status} instead of 200`);
      } catch (cause) {
        if (!(cause instanceof NoServiceAnswer))
          return failure('unreachable', `cannot be reached (${errorCodeOf(cause)})`);
        return failure(cause.why === 'redirect' ? 'status' : cause.why, cause.message);
      }
    },
  };
}
