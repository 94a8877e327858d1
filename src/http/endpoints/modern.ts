import { type CallObserver, type CallOrigin, CallReport } from '../../call/call-report.ts';
import { ModernAnswer } from '../../call/modern-answer.ts';
import type { Groups } from '../../era/modern-on-legacy/groups.ts';
import type { ClientOrigin, ModernServer } from '../../modern/modern-server.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { type Message, memberValue, protocolVersionKey } from '../../protocol/message/message.ts';
import { isVendorNotification } from '../../protocol/message/vendor-notification.ts';
import { type Envelope, readEnvelope } from '../../protocol/modern/envelope.ts';
import { disagreeingHeader, missingHeader, type RequestHeaders } from '../../protocol/modern/mirrored-headers.ts';
import { exceedsFilterLimits, hasFilter, isFilterAmbiguous } from '../../protocol/modern/subscription-filter.ts';
import type { Principal } from '../../protocol/principal.ts';
import { type Era, modernRevisions } from '../../protocol/revisions.ts';
import type { Reply } from '../../reply/reply.ts';
import { detach } from '../../util/boundary.ts';
import type { AdmittedRequest } from '../pipeline/admission.ts';

/** Options of the endpoint. */
export interface ModernEndpointOptions {
  readonly modern: ModernServer;
  /** The same server, where it is of the legacy era. */
  readonly groups: Groups;
  readonly commitAfterMs: number;
  readonly slowReaderMs: number;
  /** Observer of the calls, if there is one. */
  readonly calls?: CallObserver | undefined;
}

/** The endpoint of one server for clients of the modern era, which use only POST. */
export interface ModernEndpoint {
  /** Answers a POST of the modern era, or one that claims to be. */
  post(message: Message, headers: RequestHeaders, sender: Pick<AdmittedRequest, 'principal'>, reply: Reply): void;
}

/** The fault of a message, as in the catalogue of faults. */
interface Refusal {
  readonly reason: Reason;
  readonly data?: Record<string, unknown>;
}

/** Methods that this era has removed from the protocol. A server that supports both eras could still answer them. */
const removedMethods: ReadonlySet<string | undefined> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
]);

/** Returns fault data about a header that does not match the body, and whether it is missing. */
const describeMismatch = (header: string, headers: RequestHeaders): Record<string, unknown> => ({
  header,
  problem: headers[header.toLowerCase()] === undefined ? 'missing' : 'different',
});

/**
 * Creates the Streamable HTTP endpoint of 2026-07-28 (basic/transports/streamable-http): every POST is independent. Bad
 * ones are refused in the order of the official server: envelope, headers that disagree with the body, version, missing
 * headers, mirrored parameters. The server answers all others. A POST that is malformed in itself starts no server.
 */
export function createModernEndpoint({
  modern,
  groups,
  commitAfterMs,
  slowReaderMs,
  calls,
}: ModernEndpointOptions): ModernEndpoint {
  const createReport = (request: Message, principal: Principal, reply: Reply): CallReport | undefined => {
    if (calls === undefined) return undefined;
    const origin: CallOrigin = { server: modern.name, era: 'modern', principal };
    return new CallReport(calls, origin, request, reply);
  };
  const request = (
    message: Message,
    headers: RequestHeaders,
    { principal }: Pick<AdmittedRequest, 'principal'>,
    reply: Reply,
  ): void => {
    const { forwarded, scopes, needs } = reply;
    const origin: ClientOrigin = { principal, forwarded, scopes, needs };
    const hidesServerErrors = message.method === 'server/discover';
    const report = createReport(message, principal, reply);
    const id = message.id as RequestId;
    const answer = new ModernAnswer({ reply, id, commitAfterMs, slowReaderMs, hidesServerErrors, watch: report });
    const read = readEnvelope(message);
    if (!read.ok) return answer.fault('bad_envelope', { missing: read.missing });
    const { envelope } = read;
    const header = disagreeingHeader(message, envelope.protocolVersion, headers);
    if (header !== undefined) return answer.fault('header_mismatch', describeMismatch(header, headers));
    if (modern.era === undefined) answer.awaitsStart(); // the era becomes known by a start of the server
    const onFault = (): void => {
      if (!answer.isOver) answer.fault('internal');
    };
    withEra(reply, onFault, (era) => {
      answer.started();
      if (answer.isOver) return;
      const refusal = findFault(era, message, envelope, headers);
      if (refusal !== undefined) return answer.fault(refusal.reason, refusal.data);
      if (message.method === 'subscriptions/listen') {
        if (!reply.accepts.sse) return answer.fault('not_acceptable');
        if (!hasFilter(message)) return answer.fault('bad_filter');
      }
      const forward = (): void => {
        if (era === 'legacy') groups.request(message, envelope, { principal, forwarded }, answer);
        else modern.request(message, envelope.logLevel, answer, origin);
        report?.sent();
      };
      if (message.method !== 'tools/call') return forward();
      const outcome =
        era === 'legacy'
          ? groups.checkParams(message, headers, { principal, forwarded })
          : modern.checkParams(message, headers, origin);
      handleParamCheck(outcome, headers, answer, forward);
    });
  };

  const withEra = ({ forwarded }: Reply, onFault: () => void, serve: (era: Era | Reason) => void): void => {
    const { era } = modern;
    if (era !== undefined) serve(era);
    else detach('request', modern.findEra(forwarded).then(serve), onFault);
  };

  /** Returns the fault of a request by the rules that are the same for every tool. */
  const findFault = (
    era: Era | Reason,
    message: Message,
    { protocolVersion }: Envelope,
    headers: RequestHeaders,
  ): Refusal | undefined => {
    if (era !== 'modern' && era !== 'legacy') return { reason: era };
    if (!(modernRevisions as readonly string[]).includes(protocolVersion)) {
      return { reason: 'version_not_served', data: { supported: modern.revisions, requested: protocolVersion } };
    }
    const header = missingHeader(message, headers);
    if (header !== undefined) return { reason: 'header_mismatch', data: describeMismatch(header, headers) };
    if (message.method === 'subscriptions/listen') {
      if (isFilterAmbiguous(message)) return { reason: 'duplicate_key' };
      if (exceedsFilterLimits(message)) return { reason: 'filter_too_large' };
    }
    return removedMethods.has(message.method) ? { reason: 'method_removed' } : undefined;
  };

  const handleParamCheck = (
    outcome: ReturnType<ModernServer['checkParams']>,
    headers: RequestHeaders,
    answer: ModernAnswer,
    forward: () => void,
  ): void => {
    const handleFault = (fault: Awaited<typeof outcome>): void => {
      if (answer.isOver) return;
      if (fault === undefined) forward();
      else if (fault === 'duplicate_key') answer.fault('duplicate_key');
      else answer.fault('header_mismatch', describeMismatch(fault.header, headers));
    };
    if (outcome instanceof Promise)
      detach('request', outcome.then(handleFault), () => answer.isOver || answer.fault('internal'));
    else handleFault(outcome);
  };

  /**
   * Closing the stream cancels a request, and the server requests the roots again when it needs them. So only vendor
   * notifications are forwarded.
   */
  const notifyLegacyServer = async (message: Message, principal: Principal, reply: Reply): Promise<void> => {
    const isVendorMessage = isVendorNotification(message);
    const isAccepted = isVendorMessage && (await groups.notify(message, { principal, forwarded: reply.forwarded }));
    if (isVendorMessage && !isAccepted) modern.reportUnplaced(message.text);
    reply.accepted();
  };

  const notify = (
    message: Message,
    headers: RequestHeaders,
    { principal }: Pick<AdmittedRequest, 'principal'>,
    reply: Reply,
  ): void => {
    const version = memberValue(message, 'meta', protocolVersionKey);
    if (message.isModern && typeof version !== 'string') {
      return reply.fault('bad_envelope', null, { missing: [protocolVersionKey] });
    }
    const header = disagreeingHeader(message, typeof version === 'string' ? version : undefined, headers);
    if (header !== undefined) return reply.fault('header_mismatch', null, describeMismatch(header, headers));
    const onFault = (): void => reply.fault('internal', null);
    withEra(reply, onFault, (era) => {
      if (era === 'legacy') return detach('request', notifyLegacyServer(message, principal, reply), onFault);
      const reason = era === 'modern' ? modern.notify(message, { principal, forwarded: reply.forwarded }) : era;
      if (reason === undefined) reply.accepted();
      else reply.fault(reason, null);
    });
  };

  return {
    post(message, headers, sender, reply) {
      if (message.kind === 'request') request(message, headers, sender, reply);
      else if (message.kind === 'notification') notify(message, headers, sender, reply);
      else reply.fault('modern_response', null);
    },
  };
}
