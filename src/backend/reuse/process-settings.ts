import type { RequestId } from '../../protocol/faults.ts';
import { scalarAt } from '../../protocol/json/splice.ts';
import { refusalOfSubscription } from '../../protocol/kept-uris.ts';
import { createFaultResponse } from '../../protocol/message/gateway-fault.ts';
import { createMessage, type Message } from '../../protocol/message/message.ts';
import { readLogLevel, severities } from '../../protocol/modern/log-levels.ts';
import type { MemberCall, ProcessMember, SubscriptionRequest } from './process-member.ts';

/** A request of the gateway to the server: its method and its params. */
export interface SettingRequest {
  readonly method: string;
  readonly params: { readonly [key: string]: string };
}

/**
 * The log level and the resource subscriptions of a process. Its sessions share them: the server has the most verbose
 * level that a session has set, and a subscription ends with its last subscriber.
 */
export class ProcessSettings {
  readonly #members: ReadonlySet<ProcessMember>;
  /** The level that the server was told; undefined if it was told none. */
  #serverLevel: string | undefined;

  constructor(members: ReadonlySet<ProcessMember>) {
    this.#members = members;
  }

  /**
   * Notes a request of a member that changes a setting.
   * @returns the answer of the gateway if the server must not get the request, because other members need the setting,
   *   or because the member has too many subscriptions
   */
  note(member: ProcessMember, request: Message): Message | undefined {
    const subscription = readSubscription(request);
    if (subscription !== undefined) return this.#noteSubscription(member, request, subscription);
    if (request.method !== 'logging/setLevel') return undefined;
    const level = readLogLevel(scalarAt(request.text, ['params', 'level']));
    if (level === undefined) return undefined;
    member.logLevel = level;
    const needed = this.#mostVerbose();
    if (this.#members.size > 1 && (needed === this.#serverLevel || needed !== level)) return emptyAnswer(request);
    this.#serverLevel = level;
    return undefined;
  }

  /** The server has answered a request for a subscription. */
  noteAnswer({ member, subscription }: MemberCall, isError: boolean): void {
    if (subscription === undefined || subscription.isEnd || !isError) return;
    member.subscriptions.delete(subscription.uri);
  }

  /** The requests to the server after a member has left. */
  requestsAfter(left: ProcessMember): SettingRequest[] {
    const requests: SettingRequest[] = [];
    for (const uri of left.subscriptions.keys()) {
      if (!this.#isSubscribed(uri)) requests.push({ method: 'resources/unsubscribe', params: { uri } });
    }
    left.subscriptions.clear();
    return [...requests, ...this.levelRequests()];
  }

  /** The request to the server if its level is not the most verbose one any more. */
  levelRequests(): SettingRequest[] {
    const level = this.#mostVerbose();
    const hasLevels = level !== undefined && [...this.#members].every(({ logLevel }) => logLevel !== undefined);
    if (!hasLevels || level === this.#serverLevel) return [];
    this.#serverLevel = level;
    return [{ method: 'logging/setLevel', params: { level } }];
  }

  #noteSubscription(member: ProcessMember, request: Message, { uri, isEnd }: SubscriptionRequest): Message | undefined {
    if (!isEnd) {
      const refusal = refusalOfSubscription(member.subscriptions, uri);
      if (refusal !== undefined) return createFaultResponse(refusal, request.id as RequestId);
      member.subscriptions.set(uri, true);
      return undefined;
    }
    member.subscriptions.delete(uri);
    return this.#isSubscribed(uri) ? emptyAnswer(request) : undefined;
  }

  #isSubscribed(uri: string): boolean {
    return [...this.#members].some(({ subscriptions }) => subscriptions.has(uri));
  }

  #mostVerbose(): string | undefined {
    return severities.find((level) => [...this.#members].some(({ logLevel }) => logLevel === level));
  }
}

/** Returns the resource that a request subscribes to, or unsubscribes from. */
export function readSubscription({ method, text }: Message): SubscriptionRequest | undefined {
  if (method !== 'resources/subscribe' && method !== 'resources/unsubscribe') return undefined;
  const uri = scalarAt(text, ['params', 'uri']);
  return typeof uri === 'string' ? { uri, isEnd: method === 'resources/unsubscribe' } : undefined;
}

const emptyAnswer = ({ id }: Message): Message => createMessage({ id, result: {} });
