import { type CallObserver, createCallReporter } from '../../call/call-report.ts';
import { ModernAnswer } from '../../call/modern-answer.ts';
import type { Groups } from '../../era/modern-on-legacy/groups.ts';
import { isServedRevision } from '../../protocol/revisions.ts';
import type { Reply } from '../../reply/reply.ts';
import type { AdmittedRequest } from '../pipeline/admission.ts';
import type { PostedMessages } from '../pipeline/read-messages.ts';

/** What the face needs. */
export interface SessionlessEndpointOptions {
  readonly groups: Groups;
  readonly commitAfterMs: number;
  readonly slowReaderMs: number;
  readonly server: { readonly name: string };
  /** Is told of the calls; absent if nobody wants to know. */
  readonly calls?: CallObserver | undefined;
}

/** What a POST of the legacy era brought. */
export type LegacyPost = Pick<Extract<PostedMessages, { ok: true }>, 'messages' | 'isBatch' | 'id'>;

/** The endpoint of one server for clients of the legacy era that have no session, who have POST only. */
export interface SessionlessEndpoint {
  /**
   * Answers a POST without a session id.
   * @param version what the request says of its revision, if it does
   */
  post(posted: LegacyPost, version: string | undefined, sender: Pick<AdmittedRequest, 'principal'>, reply: Reply): void;
}

/**
 * Requests of the legacy era that stand for themselves (docs/decisions/0031). Notifications are taken, as their sender wants
 * it, but there is nobody whom they would tell anything: what a client cancels cannot be known by its id alone, which others use
 * as well. An answer is to a question that nobody asked, and batches are left to sessions.
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
      const watch = createCallReporter(calls, principal, { server: server.name })?.(message, reply);
      const answer = new ModernAnswer({ ...limits, reply, id: message.id ?? '', era: 'legacy', watch });
      groups.sessionless(message, { principal, forwarded: reply.forwarded }, answer);
      watch?.sent();
    },
  };
}
