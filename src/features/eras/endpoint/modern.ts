import type { CallSender, CallTasks } from '../../../app/features/call-tasks.ts';
import { Answer, type AnswerObserver } from '../../../core/call/answer.ts';
import type { CallOrigin, CallTelemetry } from '../../../core/call/call-events.ts';
import { CallReport } from '../../../core/call/call-report.ts';
import { LiveTarget } from '../../../core/call/live-target.ts';
import { silenceOf } from '../../../core/call/silent-call.ts';
import type { Refusal, RequestContext } from '../../../core/http/request-context.ts';
import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import { reasonWithChallenge } from '../../../core/protocol/http/upstream-challenge.ts';
import { type Message, memberValue, protocolVersionKey } from '../../../core/protocol/message/message.ts';
import { isVendorNotification } from '../../../core/protocol/message/vendor-notification.ts';
import { isRemoved } from '../../../core/protocol/methods/methods.ts';
import { type Envelope, readEnvelope } from '../../../core/protocol/modern/envelope.ts';
import {
  disagreeingHeader,
  missingHeader,
  type RequestHeaders,
} from '../../../core/protocol/modern/mirrored-headers.ts';
import {
  exceedsFilterLimits,
  hasFilter,
  isFilterAmbiguous,
} from '../../../core/protocol/modern/subscription-filter.ts';
import type { Principal } from '../../../core/protocol/principal.ts';
import type { Era } from '../../../core/protocol/revisions.ts';
import { accepted, faultAnswer, type Reply } from '../../../core/reply/reply.ts';
import { detach } from '../../../core/util/boundary.ts';
import { isListChange, type ListCache } from '../modern/list-cache.ts';
import type { ClientOrigin, ModernServer } from '../modern/modern-server.ts';
import type { Groups } from '../modern-on-legacy/groups.ts';
import type { ParamFault, ToolHeaders } from './tool-headers.ts';

/** Options of the endpoint. */
export interface ModernEndpointOptions {
  readonly modern: ModernServer;
  /** The same server, where it is of the legacy era. */
  readonly groups: Groups;
  /** The lists of the server that are kept. */
  readonly lists: ListCache;
  /** Checks calls against the listed tools. */
  readonly tools: ToolHeaders;
  /** The tasks that the gateway makes of calls; absent if it makes none. */
  readonly tasks?: CallTasks | undefined;
  readonly commitAfterMs: number;
  /** How long a call may be silent before its client gets progress; for ever by default. */
  readonly progressMs?: number;
  readonly slowReaderMs: number;
  /** Reports the calls; absent if nobody wants reports. */
  readonly calls?: CallTelemetry | undefined;
}

/** Returns fault data about a header that does not match the body, and whether it is missing. */
const describeMismatch = (header: string, headers: RequestHeaders): Record<string, unknown> => ({
  header,
  problem: headers[header.toLowerCase()] === undefined ? 'missing' : 'different',
});

/**
 * The Streamable HTTP endpoint of 2026-07-28 (basic/transports/streamable-http), whose clients use only POST. Every POST
 * is independent. A POST that is malformed in itself starts no server.
 */
export class ModernEndpoint {
  readonly #options: ModernEndpointOptions;

  constructor(options: ModernEndpointOptions) {
    this.#options = options;
  }

  /** Answers a POST of the modern era, or one that claims to be. */
  post(context: RequestContext, message: Message, reply: Reply): void {
    if (message.kind === 'request') new ModernRequest(this.#options, context, message, reply).begin();
    else if (message.kind === 'notification') this.#notify(context, message, reply);
    else reply.answer(faultAnswer('modern_response', null));
  }

  #notify(context: RequestContext, message: Message, reply: Reply): void {
    const { headers } = context;
    const version = memberValue(message, 'meta', protocolVersionKey);
    if (message.isModern && typeof version !== 'string') {
      return reply.answer(faultAnswer('bad_envelope', null, { missing: [protocolVersionKey] }));
    }
    const header = disagreeingHeader(message, typeof version === 'string' ? version : undefined, headers);
    if (header !== undefined)
      return reply.answer(faultAnswer('header_mismatch', null, describeMismatch(header, headers)));
    const { modern } = this.#options;
    const place = (era: Era | Reason): void => this.#placeNotification(era, context, message, reply);
    if (modern.era !== undefined) return place(modern.era);
    context.contain(() => modern.findEra(reply.request.forwarded).then(place));
  }

  #placeNotification(era: Era | Reason, context: RequestContext, message: Message, reply: Reply): void {
    const { principal } = context.sender;
    if (era === 'legacy') return context.contain(() => this.#notifyLegacyServer(message, principal, reply));
    const { modern } = this.#options;
    const reason = era === 'modern' ? modern.notify(message, { principal, forwarded: reply.request.forwarded }) : era;
    if (reason === undefined) reply.answer(accepted);
    else reply.answer(faultAnswer(reasonWithChallenge(reason, reply.request.forwarded), null));
  }

  /**
   * Closing the stream cancels a request, and the server requests the roots again when it needs them. So only vendor
   * notifications are forwarded.
   */
  async #notifyLegacyServer(message: Message, principal: Principal, reply: Reply): Promise<void> {
    const { modern, groups } = this.#options;
    const isVendorMessage = isVendorNotification(message);
    const isAccepted =
      isVendorMessage && (await groups.notify(message, { principal, forwarded: reply.request.forwarded }));
    if (isVendorMessage && !isAccepted) modern.reportUnplaced(message.text);
    reply.answer(accepted);
  }
}

/** One request of the modern era, from its envelope to the server that answers it. A class, since every call gets one. */
class ModernRequest {
  readonly #endpoint: ModernEndpointOptions;
  readonly #message: Message;
  readonly #headers: RequestHeaders;
  readonly #reply: Reply;
  readonly #origin: ClientOrigin;
  readonly #report: CallReport | undefined;
  readonly #answer: Answer;

  constructor(
    endpoint: ModernEndpointOptions,
    { headers, sender, needs }: RequestContext,
    message: Message,
    reply: Reply,
  ) {
    const { modern, calls, commitAfterMs, slowReaderMs } = endpoint;
    const { principal, identity } = sender;
    const { forwarded } = reply.request;
    const callOrigin: CallOrigin = { server: modern.name, era: 'modern', principal };
    this.#endpoint = endpoint;
    this.#message = message;
    this.#headers = headers;
    this.#reply = reply;
    this.#origin = { principal, forwarded, scopes: identity.scopes, needs };
    this.#report = calls && new CallReport(calls, callOrigin, message, reply.request);
    this.#answer = new Answer(new LiveTarget(slowReaderMs), {
      era: 'modern',
      hidesServerErrors: message.method === 'server/discover',
      reply,
      ids: [message.id as RequestId],
      commitAfterMs,
      silence: silenceOf(message.progressToken, endpoint.progressMs),
      report: this.#report,
    });
  }

  /**
   * Refuses a bad request in the order of the official server: envelope, headers that disagree with the body, version,
   * missing headers, mirrored parameters. The server answers any other request.
   */
  begin(): void {
    const { modern } = this.#endpoint;
    const read = readEnvelope(this.#message);
    // A client of both eras may send a removed method as in the legacy era. In a session, its 404 would mean a lost session.
    const isInSession = this.#headers['mcp-session-id'] !== undefined;
    if (!read.ok && !isInSession && isRemoved(this.#message.method)) return this.#answer.fault('method_removed');
    if (!read.ok) return this.#answer.fault('bad_envelope', { missing: read.missing });
    const { envelope } = read;
    const header = disagreeingHeader(this.#message, envelope.protocolVersion, this.#headers);
    if (header !== undefined) return this.#answer.fault('header_mismatch', describeMismatch(header, this.#headers));
    if (modern.era !== undefined) return this.#serve(modern.era, envelope);
    this.#report?.awaitsStart(); // the era becomes known by a start of the server
    this.#settle(modern.findEra(this.#reply.request.forwarded).then((era) => this.#serve(era, envelope)));
  }

  /** Ends this request alone if a later step of it fails. */
  #settle(step: Promise<void> | undefined): void {
    detach('request', step, () => this.#answer.isOver || this.#answer.fault('internal'));
  }

  #serve(era: Era | Reason, envelope: Envelope): void {
    const answer = this.#answer;
    this.#report?.started();
    if (answer.isOver) return;
    if (era !== 'modern' && era !== 'legacy') return answer.fault(era);
    const refusal = this.#findFault(envelope);
    if (refusal !== undefined) return answer.fault(refusal.reason, refusal.data);
    const { tools, tasks } = this.#endpoint;
    if (tasks?.serves(this.#message, era) === true)
      return this.#settle(tasks.serve(this.#message, answer, this.#origin, this.#senderFor(era, envelope)));
    if (this.#message.method !== 'tools/call') return this.#forward(era, envelope);
    const outcome = tools.check(this.#message, this.#headers, this.#origin);
    if (outcome instanceof Promise) this.#settle(outcome.then((fault) => this.#finishCheck(fault, era, envelope)));
    else this.#finishCheck(outcome, era, envelope);
  }

  /** Returns the fault of the request by the rules that are the same for every tool. */
  #findFault({ protocolVersion, revision }: Envelope): Refusal | undefined {
    const { modern } = this.#endpoint;
    const [message, headers] = [this.#message, this.#headers];
    if (revision === undefined) {
      return { reason: 'version_not_served', data: { supported: modern.revisions, requested: protocolVersion } };
    }
    const header = missingHeader(message, headers, revision);
    if (header !== undefined) return { reason: 'header_mismatch', data: describeMismatch(header, headers) };
    if (isRemoved(message.method)) return { reason: 'method_removed' };
    if (message.method !== 'subscriptions/listen') return undefined;
    if (isFilterAmbiguous(message)) return { reason: 'duplicate_key' };
    if (exceedsFilterLimits(message)) return { reason: 'filter_too_large' };
    if (!this.#reply.request.accepts.sse) return { reason: 'not_acceptable' };
    return hasFilter(message) ? undefined : { reason: 'bad_filter' };
  }

  #finishCheck(fault: ParamFault, era: Era, envelope: Envelope): void {
    const answer = this.#answer;
    if (answer.isOver) return;
    if (fault === undefined) this.#forward(era, envelope);
    else if (fault === 'duplicate_key') answer.fault('duplicate_key');
    else answer.fault('header_mismatch', describeMismatch(fault.header, this.#headers));
  }

  /** A client that is told of a change gets the changed list, also if another instance has seen the change. */
  #createObserver(era: Era): AnswerObserver | undefined {
    const { lists, tools, tasks } = this.#endpoint;
    if (this.#message.method === 'subscriptions/listen') {
      return {
        message(message) {
          if (isListChange(message)) lists.clear();
          return message;
        },
      };
    }
    if (this.#message.method === 'server/discover' && tasks !== undefined)
      return { response: (message) => tasks.advertise(message) };
    const keep = lists.observe(this.#message, this.#origin, era === 'legacy');
    if (this.#message.method !== 'tools/list') return keep && { response: keep };
    return {
      response: (message) => {
        if (!message.isError) tools.learn(message.text, this.#origin);
        return keep?.(message) ?? message;
      },
    };
  }

  #forward(era: Era, envelope: Envelope): void {
    const { lists, tasks } = this.#endpoint;
    const kept = lists.find(this.#message, this.#origin);
    if (kept !== undefined) return this.#answer.response(kept);
    this.#answer.observer = this.#createObserver(era);
    const listed = tasks?.tasksOf(this.#message);
    if (tasks?.mayMake(this.#message) === true)
      this.#settle(tasks.call(this.#message, this.#answer, this.#origin, this.#senderFor(era, envelope)));
    else if (tasks !== undefined && listed !== undefined)
      this.#settle(
        tasks.listen(this.#message, listed, this.#answer, this.#reply, this.#origin, this.#senderFor(era, envelope)),
      );
    else this.#send(this.#message, era, envelope, this.#answer);
    this.#report?.sent();
  }

  #send(message: Message, era: Era, envelope: Envelope, answer: Answer): void {
    const { modern, groups } = this.#endpoint;
    if (era === 'legacy') groups.request(message, envelope, this.#origin, answer);
    else modern.request(message, envelope.logLevel, answer, this.#origin);
  }

  /** Sends requests of tasks for the client of this request. Each has an envelope of its own. */
  #senderFor(era: Era, envelope: Envelope): CallSender {
    const { groups } = this.#endpoint;
    const envelopeOf = (message: Message): Envelope => {
      if (message === this.#message) return envelope;
      const read = readEnvelope(message);
      if (!read.ok) throw new Error('a request of a task without an envelope');
      return read.envelope;
    };
    return {
      send: (message, answer) => this.#send(message, era, envelopeOf(message), answer),
      follow:
        era === 'legacy'
          ? (message, answer, point) => groups.follow(message, envelopeOf(message), this.#origin, answer, point)
          : undefined,
    };
  }
}
