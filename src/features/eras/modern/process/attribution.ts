import type { RequestIds } from '../../../../core/backend/backend.ts';
import type { ModernDropReason } from '../../../../core/ops/shared-server-events.ts';
import type { RequestId } from '../../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../../core/protocol/http/forwarded-headers.ts';
import { createFaultResponse } from '../../../../core/protocol/message/gateway-fault.ts';
import { type BadAnswer, faultData, type Message } from '../../../../core/protocol/message/message.ts';
import { readProgressValue } from '../../../../core/protocol/message/progress-value.ts';
import { isVendorNotification } from '../../../../core/protocol/message/vendor-notification.ts';
import { methodOf } from '../../../../core/protocol/methods/methods.ts';
import { withServedVersions } from '../../../../core/protocol/modern/discovery.ts';
import { statusOf } from '../../../../core/protocol/modern/error-status.ts';
import { isWanted } from '../../../../core/protocol/modern/log-levels.ts';
import { missedChanges } from '../../../../core/protocol/modern/missed-changes.ts';
import {
  listenResult,
  restoreId,
  restoreListenResponse,
  restoreSubscription,
  restoreToken,
  subscriptionOf,
} from '../../../../core/protocol/modern/renumber.ts';
import { readFilter, toSubscriptionNotification } from '../../../../core/protocol/modern/subscription-filter.ts';
import { contain } from '../../../../core/util/boundary.ts';
import { ReplacedListens } from './replaced-listens.ts';
import type { SharedCall, SharedCalls } from './shared-calls.ts';

export interface ProcessAttributionOptions {
  readonly calls: SharedCalls;
  /** True if the server declares a capability, or its answer to `server/discover` has no `capabilities`. */
  declares(capability: string): boolean;
  /** The server has answered a request, with this text. */
  onAnswered(call: SharedCall, text: Buffer): void;
  /** True if a subscriber may learn of the task in a notification. */
  maySeeTask(call: SharedCall, notification: Message): boolean;
  onDropped(what: ModernDropReason, text: Buffer, answer?: BadAnswer): void;
  /**
   * Sends the server a message of the gateway's own.
   * @param headers of the client whose request it concerns
   */
  sendToServer(message: Message, headers: ForwardedHeaders | undefined): void;
}

const acknowledged = 'notifications/subscriptions/acknowledged';

/** The notification about one task (2026-07-28, io.modelcontextprotocol/tasks). */
const taskNotification = 'notifications/tasks';

/**
 * Delivers each message of a shared process to the client that it belongs to (P2, P11).
 *
 * Responses, progress and notifications of subscriptions are matched by numbers that the gateway gave. A log message is
 * matched if only one request wants log messages. A notification that no specification defines is matched if there is
 * only one request. If the transport tells which request a message came beside, a message that names another request is
 * dropped. A message that cannot be matched goes to nobody.
 */
export class ProcessAttribution {
  readonly #options: ProcessAttributionOptions;
  readonly #listens: ReplacedListens;

  constructor(options: ProcessAttributionOptions) {
    this.#options = options;
    this.#listens = new ReplacedListens(options.calls);
  }

  /**
   * Delivers messages of the server, in order.
   * @param beside the requests that the messages came beside, if the transport tells
   */
  deliver(messages: readonly Message[], beside?: RequestIds): void {
    for (const message of messages) contain('shared_process', () => this.#deliverOne(message, beside));
  }

  #deliverOne(message: Message, beside: RequestIds | undefined): void {
    const { calls } = this.#options;
    if (message.kind === 'request') return this.#refuseRequest(message, calls.named(undefined, beside));
    const call = calls.named(namedRequest(message), beside);
    if (call === 'foreign') this.#drop('foreign', message.text);
    else if (message.kind === 'response') this.#deliverResponse(message, call);
    else this.#deliverNotification(message, call, beside !== undefined && beside.length > 0);
  }

  /**
   * The modern era has no requests of servers. An error answers such a request, so that the server and its client do
   * not wait forever.
   */
  #refuseRequest({ id = null, text }: Message, call: SharedCall | 'foreign' | undefined): void {
    this.#drop('server_request', text);
    const refusal = createFaultResponse('no_server_requests', id, {}, 'modern');
    this.#options.sendToServer(refusal, typeof call === 'object' ? call.headers : undefined);
  }

  #deliverResponse(response: Message, call: SharedCall | undefined): void {
    this.#options.calls.take(response.id);
    if (call === undefined || call.id !== response.id) return this.#drop('late', response.text);
    // A fault ends this call only, not the other calls of the process.
    const onFault = (): void => call.answer.fault('internal');
    contain('shared_process', () => this.#answer(call, response), onFault);
  }

  #answer(call: SharedCall, response: Message): void {
    const { declares, onAnswered, onDropped } = this.#options;
    onAnswered(call, response.text);
    const { standIn } = response;
    if (standIn?.reason === 'bad_response')
      onDropped('bad_response', standIn.written, { method: call.method, problem: standIn.problem });
    if (standIn !== undefined) return call.answer.fault(standIn.reason, faultData(standIn));
    const restore = call.isListen ? restoreListenResponse : restoreId;
    const restored = restore(response, call);
    const forClient = call.method === 'server/discover' ? withServedVersions(restored) : restored;
    call.answer.response(forClient, statusOf(response, call.method, declares, call.revision));
  }

  /**
   * @param call the awaited call that the notification names, or else the one that it came beside
   * @param isTold true if the transport tells beside which request a message comes
   */
  #deliverNotification(notification: Message, call: SharedCall | undefined, isTold: boolean): void {
    const { method } = notification;
    if (subscriptionOf(notification) !== undefined) this.#deliverToSubscriber(notification, call, isTold);
    else if (method === 'notifications/progress') this.#deliverProgress(notification, call);
    else if (method === 'notifications/message') this.#deliverLog(notification, call, isTold);
    else if (method === 'notifications/cancelled') this.#endListen(notification, call);
    else this.#deliverUnmatched(notification, call, isTold);
  }

  /** Delivers a notification that names no request and is of no known kind. */
  #deliverUnmatched(notification: Message, beside: SharedCall | undefined, isTold: boolean): void {
    const { method, text } = notification;
    const { isChange } = methodOf(method); // only subscribers get it
    if (isChange && !isTold) return this.#deliverToAll(notification);
    const mayBeOfOnly = !isTold && isVendorNotification(notification);
    const call = mayBeOfOnly ? this.#options.calls.only(false) : beside;
    if (call === undefined || call.isListen || isChange) this.#drop('unattributed', text);
    else this.#send(call, notification);
  }

  /**
   * Delivers a change whose subscription the server does not name. A change is one of the whole process, so each
   * subscriber gets it that asked for changes of its kind.
   */
  #deliverToAll(change: Message): void {
    const subscribers = this.#options.calls.subscribersTo(change);
    if (subscribers.size === 0) return this.#drop('unattributed', change.text);
    for (const call of [...subscribers]) this.#send(call, toSubscriptionNotification(change, call.idText));
  }

  #deliverToSubscriber(notification: Message, call: SharedCall | undefined, isTold: boolean): void {
    const { method, text } = notification;
    if (call?.isListen !== true) return this.#drop('late', text);
    if (method === acknowledged) {
      // A new process acknowledges again what the client knows already. Changes before that may be missed, so they are
      // reported.
      if (call.isAcknowledged) {
        this.#listens.clear();
        for (const change of missedChanges(readFilter(notification), call.idText)) this.#send(call, change);
        return;
      }
      this.#options.calls.acknowledge(call, readFilter(notification));
      this.#listens.noteAcknowledged();
    } else if (!call.isAcknowledged || methodOf(method).isOfRequest) return this.#drop('unacknowledged', text);
    if (method === taskNotification && !this.#options.maySeeTask(call, notification))
      return this.#drop('foreign', text);
    // A subscription with a connection of its own is not replaced by another one.
    const subscribers = isTold ? [call] : this.#listens.subscribersOf(call, notification);
    for (const each of subscribers) this.#send(each, restoreSubscription(notification, each.idText));
  }

  #deliverProgress(notification: Message, call: SharedCall | undefined): void {
    const { text, progressToken } = notification;
    if (call?.tokenText === undefined || call.isListen || call.id !== progressToken) return this.#drop('late', text);
    call.activeAt = performance.now();
    const progress = readProgressValue(text);
    if (call.isRerun && progress <= call.lastProgress) return;
    call.lastProgress = progress;
    this.#send(call, restoreToken(notification, call.clientToken, call.tokenText));
  }

  /** Delivers a log message, which does not name its request. */
  #deliverLog(notification: Message, beside: SharedCall | undefined, isTold: boolean): void {
    const call = isTold ? beside : this.#options.calls.only(true);
    if (call?.isListen === false && isWanted(notification, call.logLevel)) this.#send(call, notification);
    else this.#drop('log', notification.text);
  }

  /**
   * Ends a subscription on behalf of the server (2026-07-28, basic/patterns/cancellation): over HTTP its result says
   * so.
   */
  #endListen({ cancels, text }: Message, call: SharedCall | undefined): void {
    if (call?.isListen !== true || call.id !== cancels) return this.#drop('late', text);
    this.#options.calls.take(call.id);
    call.answer.response(listenResult(call.idText), 200);
  }

  #send(call: SharedCall, notification: Message): void {
    const send = (): void => {
      if (!call.answer.message(notification)) this.#drop('undeliverable', notification.text);
    };
    contain('shared_process', send, () => {
      this.#options.calls.take(call.id);
      call.answer.fault('internal');
    });
  }

  #drop(what: ModernDropReason, text: Buffer): void {
    this.#options.onDropped(what, text);
  }
}

/** Returns the request that a message names. */
const namedRequest = (message: Message): RequestId | undefined =>
  message.kind === 'response'
    ? (message.id ?? undefined)
    : (subscriptionOf(message) ?? message.progressToken ?? message.cancels);
