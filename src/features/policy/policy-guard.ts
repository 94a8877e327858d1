// src/features/policy: asks a policy service about the calls to a server.

import type { PolicyOptions } from '../../app/features/calls.ts';
import { readSender } from '../../core/auth/request-sender.ts';
import type { BackendEnd, OpenOptions, RequestIds, Sent } from '../../core/backend/backend.ts';
import { AnswerWatcher } from '../../core/backend/link/answer-watcher.ts';
import type { Outgoing } from '../../core/backend/link/link.ts';
import { isResponse, OwnRequests } from '../../core/backend/own-requests.ts';
import { WaitingRequests } from '../../core/backend/waiting-budget.ts';
import type { RequestStateBinding } from '../../core/keys/request-state.ts';
import type { PolicyDecision, PolicyFailure, PolicyPhase } from '../../core/ops/server-events.ts';
import type { Reason, RequestId } from '../../core/protocol/faults.ts';
import { decidedHeader, noHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../core/protocol/ids/own-ids.ts';
import { findRange, scalarAt, splice, valueAt } from '../../core/protocol/json.ts';
import { changedMessage } from '../../core/protocol/message/changed-message.ts';
import { putMembers, withoutMember } from '../../core/protocol/message/edit-members.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import {
  cancelled,
  createMessage,
  type Message,
  memberRange,
  memberValue,
  readOne,
} from '../../core/protocol/message/message.ts';
import { type ClientFeature, readClientFeatures } from '../../core/protocol/methods/askable.ts';
import { readsByUri } from '../../core/protocol/methods/methods.ts';
import { clientCapabilitiesKey } from '../../core/protocol/modern/envelope.ts';
import { contain, detach } from '../../core/util/boundary.ts';
import { ApprovalStates, approvalMs, bindingOf, isApprovalState } from './approval-state.ts';
import { type Decision, readDecision } from './decision.ts';
import type { PolicyClient } from './policy-client.ts';
import { type AskedRequest, argumentsOf, askedRequest, contentOf, questionText } from './question.ts';

/** Requests that wait for the service, or for an approval; a client can send many at once (P8). */
const maxWaiting = 1_024;

/** The requests that bring results of earlier calls: the policy sees these results, too. */
const laterResults: ReadonlySet<string | undefined> = new Set(['tasks/result', 'tasks/get']);

/** The name of the question in a modern result that asks for input. */
const approvalKey = 'policy-approval';

/** A request that waits. */
interface HeldRequest extends Outgoing {
  readonly headers: NonNullable<Outgoing['headers']>;
  readonly asked: AskedRequest;
  /** The question to the client, while it is open. */
  question?: RequestId;
}

/** A request at the server, whose result the policy sees. */
interface SentRequest {
  readonly asked: AskedRequest;
  readonly content: Buffer | undefined;
  /** Set for a request that its client had approved by a state. */
  readonly approved: RequestStateBinding | undefined;
  readonly isSeen: boolean;
}

/** The guard of one backend. */
export class PolicyGuard extends AnswerWatcher<SentRequest> {
  readonly #options: PolicyOptions;
  readonly #client: PolicyClient;
  readonly #opening: OpenOptions | undefined;
  readonly #states: ApprovalStates;
  readonly #waiting = new WaitingRequests<HeldRequest>(maxWaiting);
  /** The questions of the guard to the client. */
  readonly #questions = new OwnRequests();
  /** What the client of a legacy session can be asked; undefined if it is not known here. */
  #features: ReadonlySet<ClientFeature> | undefined;

  constructor(options: PolicyOptions, client: PolicyClient, opening: OpenOptions | undefined) {
    super();
    this.#options = options;
    this.#client = client;
    this.#opening = opening;
    this.#states = new ApprovalStates(options.keys, options.values);
  }

  override onSend(outgoing: Outgoing): Outgoing | Sent {
    const { message, headers = noHeaders } = outgoing;
    if (message.kind === 'response') return this.#questions.answer(message) ? 'sent' : outgoing;
    if (message.cancels !== undefined) return this.#cancel(message.cancels) ? 'sent' : outgoing;
    if (message.method === 'initialize') this.#noteClient(message);
    const { server, settings } = this.#options;
    if (headers[decidedHeader] === server) return outgoing;
    if (!settings.methods.has(message.method)) return this.#noteLaterResult(outgoing);
    // A careless server could run the call of a notification, which has no answer.
    if (message.kind !== 'request') return 'sent';
    const asked = askedRequest(server, message, this.#senderOf(outgoing));
    const held: HeldRequest = { message, headers, asked };
    const id = message.id as RequestId;
    if (!settings.on.has('request')) {
      this.#noteSent(held, argumentsOf(message));
      return this.#marked(held, message);
    }
    if (this.hasEnded) return 'ended';
    if (!this.#waiting.hasRoomFor(id, held)) return 'full';
    this.#waiting.set(id, held);
    detach('backend', this.#decide(held), () => this.#refuse(held, 'internal'));
    return 'sent';
  }

  protected override onAnswer(
    answer: Message,
    sent: SentRequest,
    related: RequestIds | undefined,
  ): Message | undefined {
    if (!sent.isSeen && sent.approved === undefined) return answer;
    this.keep(answer, related, this.#decideResult(answer, sent), 'result_unchecked');
    return undefined;
  }

  override onEnd(end: BackendEnd): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#questions.end(end);
    const undelivered = [...waiting, ...(end.undelivered ?? [])];
    super.onEnd(waiting.length === 0 ? end : { ...end, undelivered });
  }

  override onOver(end: BackendEnd): void {
    super.onOver(end);
    this.#waiting.clear();
    this.#questions.end(undefined);
  }

  #noteClient(initialize: Message): void {
    const capabilities = valueAt(initialize.text, ['params', 'capabilities']);
    this.#features = readClientFeatures(capabilities ?? Buffer.from('{}'));
  }

  /** The sender of a request. Without one, the owner of the session stands for it: nobody else sends there. */
  #senderOf({ headers }: Outgoing): AskedRequest['sender'] {
    const sender = readSender(headers);
    const { principal } = this.#opening ?? {};
    if (sender !== undefined) {
      // A view carries the headers that any of its servers shows.
      const { showHeaders } = this.#options.settings;
      const shown = Object.entries(sender.headers).filter(([name]) => showHeaders.includes(name));
      return { ...sender, headers: Object.fromEntries(shown) };
    }
    if (principal === undefined) return undefined;
    // The scopes of the request are unknown then, so it has none.
    const { issuer, subject, client } = principal;
    return { principal: { issuer, subject, client }, scopes: [], headers: {} };
  }

  #noteLaterResult(outgoing: Outgoing): Outgoing {
    const { message } = outgoing;
    const { server, settings } = this.#options;
    if (!laterResults.has(message.method) || message.kind !== 'request' || !settings.on.has('result')) return outgoing;
    const asked = askedRequest(server, message, this.#senderOf(outgoing));
    this.note(message, { asked, content: undefined, approved: undefined, isSeen: true });
    return outgoing;
  }

  #noteSent({ message, asked }: HeldRequest, content: Buffer | undefined, approved?: RequestStateBinding): void {
    const isSeen = this.#options.settings.on.has('result');
    if (isSeen || approved !== undefined) this.note(message, { asked, content, approved, isSeen });
  }

  /** The request as it goes on: no guard of the same server asks again. */
  #marked({ headers }: HeldRequest, message: Message): Outgoing {
    return { message, headers: { ...headers, [decidedHeader]: this.#options.server } };
  }

  /** True if the request waits no more. */
  #isGone(held: HeldRequest): boolean {
    return this.#waiting.get(held.message.id as RequestId) !== held;
  }

  /** The client has cancelled a request. True if it has not reached the server. */
  #cancel(id: RequestId): boolean {
    const held = this.#waiting.get(id);
    if (held === undefined) return false;
    this.#waiting.delete(id);
    if (held.question !== undefined) this.passMessages([cancelled(held.question, 'The request was cancelled.')], [id]);
    return true;
  }

  async #decide(held: HeldRequest): Promise<void> {
    const { message, asked } = held;
    const state = message.isModern ? memberValue(message, 'params', 'requestState') : undefined;
    const content = argumentsOf(message);
    if (isApprovalState(state)) return this.#decideByState(held, state, content);
    const decision = await this.#ask('request', asked, questionText('request', asked, contentOf(content)));
    if (this.#isGone(held)) return;
    if (decision === 'failed') this.#refuse(held, 'policy_unavailable');
    else if (decision.kind === 'deny') this.#refuse(held, 'policy_denied', decision.why);
    else if (decision.kind === 'ask') await this.#askClient(held, decision.question, content);
    else if (decision.kind === 'allow') this.#pass(held, message, content);
    else this.#passChanged(held, decision.by);
  }

  #passChanged(held: HeldRequest, by: string): void {
    const { message, asked } = held;
    if (readsByUri(message.method)) {
      this.#report('request', asked, {
        cause: 'unusable',
        detail: 'The answer changes arguments, but the request has none.',
      });
      return this.#refuse(held, 'policy_unavailable');
    }
    const text = putMembers(message, 'params', [['arguments', by]]);
    this.#pass(held, changedMessage(message, text, {}), Buffer.from(by));
  }

  /** A modern client sends the request again, with its answer. */
  async #decideByState(held: HeldRequest, state: string, content: Buffer | undefined): Promise<void> {
    const { message, asked } = held;
    const binding = bindingOf(asked, content);
    const opened = await this.#states.open(state, binding);
    if (this.#isGone(held)) return;
    const action = scalarAt(message.text, ['params', 'inputResponses', approvalKey, 'action']);
    if (opened === undefined || (!opened.isApproved && action !== 'accept'))
      return this.#refuse(held, 'approval_declined');
    const { inner } = opened;
    let text = opened.isApproved ? message.text : withoutMember(message.text, ['params', 'inputResponses']);
    text =
      inner === undefined
        ? withoutMember(text, ['params', 'requestState'])
        : splice(text, ['params', 'requestState'], JSON.stringify(inner));
    this.#pass(held, changedMessage(message, text, {}), content, binding);
  }

  /** Asks the client for an approval, as the server would. */
  async #askClient(held: HeldRequest, question: string | undefined, content: Buffer | undefined): Promise<void> {
    const { message, asked } = held;
    const what = asked.name ?? asked.uri ?? asked.method;
    const params = {
      message: question ?? `The operator's policy wants your approval. Allow ${what} on ${asked.server}?`,
      requestedSchema: { type: 'object', properties: {} },
    };
    if (message.isModern) {
      const range = memberRange(message, 'meta', clientCapabilitiesKey);
      const capabilities = range ? message.text.subarray(range.start, range.end) : Buffer.from('{}');
      if (!readClientFeatures(capabilities).has('elicitation')) return this.#refuse(held, 'approval_impossible');
      const requestState = await this.#states.seal(bindingOf(asked, content));
      if (this.#isGone(held)) return;
      const inputRequests = { [approvalKey]: { method: 'elicitation/create', params: { mode: 'form', ...params } } };
      return this.#answer(
        held,
        createMessage({ id: message.id, result: { resultType: 'input_required', inputRequests, requestState } }),
      );
    }
    if (this.#features?.has('elicitation') === false) return this.#refuse(held, 'approval_impossible');
    const request = createMessage({ id: nextOwnId(), method: 'elicitation/create', params });
    held.question = request.id as RequestId;
    const answer = await this.#questions.send(
      request,
      (own) => {
        this.passMessages([own], [message.id as RequestId]);
        return 'sent';
      },
      approvalMs,
    );
    if (this.#isGone(held)) return;
    if (!isResponse(answer)) return this.#refuse(held, 'approval_declined');
    if (answer.isError) return this.#refuse(held, 'approval_impossible');
    if (scalarAt(answer.text, ['result', 'action']) !== 'accept') return this.#refuse(held, 'approval_declined');
    this.#pass(held, message, content);
  }

  /** The request goes on to the server. */
  #pass(held: HeldRequest, message: Message, content: Buffer | undefined, approved?: RequestStateBinding): void {
    const id = held.message.id as RequestId;
    this.#waiting.delete(id);
    contain('backend', () => {
      this.#noteSent(held, content, approved);
      const marked = this.#marked(held, message);
      if (this.passSend(marked.message, marked.headers) !== 'full') return;
      this.forget(id);
      this.passUnanswered([id], 'server_busy', true);
    });
  }

  #refuse(held: HeldRequest, reason: Reason, why?: string): void {
    const data = why === undefined ? {} : { why };
    this.#answer(held, createFaultResponse(reason, held.message.id as RequestId, data));
  }

  /** Answers a request in place of the server. */
  #answer(held: HeldRequest, response: Message): void {
    if (this.#isGone(held)) return;
    this.#waiting.delete(held.message.id as RequestId);
    this.answer(response);
  }

  /** The result as the client gets it: the service decides about it. */
  async #decideResult(response: Message, sent: SentRequest): Promise<Message> {
    const id = response.id as RequestId;
    const { asked, content, approved, isSeen } = sent;
    let passed = response;
    if (isSeen) {
      const decision = await this.#ask('result', asked, questionText('result', asked, contentOf(content, response)));
      if (decision === 'failed') return createFaultResponse('result_unchecked', id);
      if (decision.kind === 'deny')
        return createFaultResponse('policy_withheld', id, decision.why === undefined ? {} : { why: decision.why });
      if (decision.kind === 'change') {
        const changed = response.isError ? undefined : readOne(splice(response.text, ['result'], decision.by));
        if (changed === undefined) {
          const detail = 'The answer changes the result of a request that has none, or into what is no result.';
          this.#report('result', asked, { cause: 'unusable', detail });
          return createFaultResponse('result_unchecked', id);
        }
        passed = changed;
      }
    }
    return approved === undefined ? passed : this.#withState(passed, approved);
  }

  /** The state of a server that asks for input carries the approval of the request, so that nobody is asked again. */
  async #withState(response: Message, binding: RequestStateBinding): Promise<Message> {
    const { text } = response;
    if (scalarAt(text, ['result', 'resultType']) !== 'input_required') return response;
    const inner = scalarAt(text, ['result', 'requestState']);
    const sealed = await this.#states.seal(binding, { inner: typeof inner === 'string' ? inner : undefined });
    if (sealed === undefined) return createFaultResponse('response_too_complex', response.id as RequestId);
    const state = JSON.stringify(sealed);
    if (inner !== undefined) return changedMessage(response, splice(text, ['result', 'requestState'], state), {});
    const result = findRange(text, ['result']);
    if (typeof result !== 'object') return response;
    const at = result.start + 1;
    const parts = [text.subarray(0, at), Buffer.from(`"requestState":${state},`), text.subarray(at)];
    return changedMessage(response, Buffer.concat(parts), {});
  }

  /** Asks the service, and reports what it says. A failure allows what the operator wants to allow then. */
  async #ask(phase: PolicyPhase, asked: AskedRequest, question: Buffer): Promise<Decision | 'failed'> {
    const startedAt = performance.now();
    const answer = await this.#client.ask(question);
    const decision = Buffer.isBuffer(answer) ? readDecision(answer, phase) : answer;
    const isUsable = typeof decision === 'object' && 'kind' in decision;
    const durationMs = performance.now() - startedAt;
    const said: PolicyDecision = isUsable ? decision.kind : 'failed';
    this.#options.emit({ type: 'policy-asked', server: asked.server, phase, decision: said, durationMs });
    if (isUsable) return decision;
    this.#report(phase, asked, typeof decision === 'string' ? { cause: 'unusable', detail: decision } : decision);
    return this.#options.settings.onFailure === 'allow' ? { kind: 'allow' } : 'failed';
  }

  #report(phase: PolicyPhase, { server }: AskedRequest, failure: PolicyFailure): void {
    this.#options.emit({ type: 'policy-failed', server, phase, ...failure });
  }
}
