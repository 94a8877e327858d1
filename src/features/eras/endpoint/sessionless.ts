import { Answer } from '../../../core/call/answer.ts';
import type { CallOrigin, CallTelemetry } from '../../../core/call/call-events.ts';
import { CallReport } from '../../../core/call/call-report.ts';
import { LiveTarget } from '../../../core/call/live-target.ts';
import type { RequestContext } from '../../../core/http/request-context.ts';
import { isLegacyRevision } from '../../../core/protocol/known-revisions.ts';
import type { ReadPost } from '../../../core/protocol/message/read-messages.ts';
import { accepted, faultAnswer, type Reply } from '../../../core/reply/reply.ts';
import type { Groups } from '../modern-on-legacy/groups.ts';

/** Options of the endpoint. */
export interface SessionlessEndpointOptions {
  readonly groups: Groups;
  readonly commitAfterMs: number;
  readonly slowReaderMs: number;
  readonly server: { readonly name: string };
  /** Reports the calls; absent if nobody wants reports. */
  readonly calls?: CallTelemetry | undefined;
}

/**
 * The endpoint of one server for independent requests of the legacy era, whose clients use only POST
 * (docs/decisions/0027). Notifications are accepted, as the sender expects, but dropped: a cancelled call cannot be found
 * by its id alone, which other clients use, too. A response answers no request of the gateway, and batches need a
 * session.
 */
export class SessionlessEndpoint {
  readonly #options: SessionlessEndpointOptions;

  constructor(options: SessionlessEndpointOptions) {
    this.#options = options;
  }

  /** Answers a POST without a session id. */
  post(context: RequestContext, { messages: [message], isBatch, id }: ReadPost, reply: Reply): void {
    const { groups, server, calls, commitAfterMs, slowReaderMs } = this.#options;
    const { principal } = context.sender;
    const version = context.header('mcp-protocol-version');
    if (version !== undefined && !isLegacyRevision(version))
      return reply.answer(faultAnswer('unsupported_version', id));
    if (message === undefined || isBatch || message.kind === 'response')
      return reply.answer(faultAnswer('session_required', id));
    if (message.kind === 'notification') return reply.answer(accepted);
    const origin: CallOrigin = { server: server.name, era: 'legacy', principal };
    const report = calls && new CallReport(calls, origin, message, reply.request);
    const ids = [message.id ?? ''];
    const target = new LiveTarget(slowReaderMs);
    const answer = new Answer(target, { era: 'legacy', reply, ids, commitAfterMs, report });
    groups.sessionless(message, { principal, forwarded: reply.request.forwarded }, answer);
    report?.sent();
  }
}
