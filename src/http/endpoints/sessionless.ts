import { type CallObserver, createCallReporter } from '../../call/call-report.ts';
import { ModernAnswer } from '../../call/modern-answer.ts';
import type { Groups } from '../../era/modern-on-legacy/groups.ts';
import { isServedRevision } from '../../protocol/revisions.ts';
import type { Reply } from '../../reply/reply.ts';
import type { AdmittedRequest } from '../pipeline/admission.ts';
import type { PostedMessages } from '../pipeline/read-messages.ts';

/** Options of the endpoint. */
export interface SessionlessEndpointOptions {
  readonly groups: Groups;
  readonly commitAfterMs: number;
  readonly slowReaderMs: number;
  readonly server: { readonly name: string };
  /** Observer of the calls, if there is one. */
  readonly calls?: CallObserver | undefined;
}

/** The messages of a POST of the legacy era. */
export type LegacyPost = Pick<Extract<PostedMessages, { ok: true }>, 'messages' | 'isBatch' | 'id'>;

/** The endpoint of one server for clients of the legacy era without a session, which use only POST. */
export interface SessionlessEndpoint {
  /**
   * Answers a POST without a session id.
   * @param version the revision that the request names, if any
   */
  post(posted: LegacyPost, version: string | undefined, sender: Pick<AdmittedRequest, 'principal'>, reply: Reply): void;
}

/**
 * Creates an endpoint for independent requests of the legacy era (docs/decisions/0031). Notifications are accepted, as
 * the sender expects, but dropped: a cancelled call cannot be found by its id alone, which other clients use, too. A
 * response answers no request of the gateway, and batches need a session.
 */
export function createSessionlessEndpoint({
  groups,
  server,
  calls,
  ...limits
}: SessionlessEndpointOptions): SessionlessEndpoint {
  return {
    post({ messages: [message], isBatch, id }, version, { principal }, reply) {
      if (version !== undefined && !isServedRevision(version)) return reply.fault('unsupported_version', id);
      if (message === undefined || isBatch || message.kind === 'response') return reply.fault('session_required', id);
      if (message.kind === 'notification') return reply.accepted();
      const report = createCallReporter(calls, principal, { server: server.name })?.(message, reply);
      const answer = new ModernAnswer({ ...limits, reply, id: message.id ?? '', era: 'legacy', watch: report });
      groups.sessionless(message, { principal, forwarded: reply.forwarded }, answer);
      report?.sent();
    },
  };
}
