import { createHash, randomBytes } from 'node:crypto';
import { type RequestStateBinding, RequestStates } from '../../core/keys/request-state.ts';
import type { StateKeys } from '../../core/keys/state-keys.ts';
import { anonymous } from '../../core/protocol/principal.ts';
import type { Values } from '../../core/store/shared/shared-data.ts';
import type { AskedRequest } from './question.ts';

/** How long a person may take for an approval. */
export const approvalMs = 10 * 60_000;

/** What a modern client brings back with an approved request (2026-07-28, basic/patterns/mrtr, "requestState"). */
interface ApprovalState {
  /** Each question can be answered once. */
  readonly once: string;
  /** True if the request was approved before, and the server itself has asked for input since. */
  readonly isApproved: boolean;
  /** The state of the server. */
  readonly inner?: string | undefined;
}

const prefix = 'policy.';

/** The longest state (P8). It carries the state of the server, and is a part of the client's next request. */
const maxLength = 4 * 1024 * 1024;

/** True for a state that the guard has made, or that pretends to be one. */
export const isApprovalState = (state: unknown): state is string =>
  typeof state === 'string' && state.startsWith(prefix);

/** Names a request of one sender, with its arguments: nothing else can be sent with its state. */
export const bindingOf = ({ server, sender, ...asked }: AskedRequest, content: Buffer | undefined) => {
  const hash = createHash('sha256')
    .update(JSON.stringify(asked))
    .update(content ?? '');
  const digest = `policy approval ${hash.digest('base64url')}`;
  return { principal: { ...anonymous, ...sender?.principal }, server, digest } satisfies RequestStateBinding;
};

/** Makes and checks the states of approvals. All instances have the keys, so the answer may come to any of them. */
export class ApprovalStates {
  readonly #states: RequestStates;
  readonly #values: Pick<Values, 'keep'>;

  constructor(keys: StateKeys, values: Pick<Values, 'keep'>) {
    this.#states = new RequestStates(keys, { maxLength });
    this.#values = values;
  }

  /**
   * Makes the state of a request that waits for its approval, or (`approved`) for input that its server wants. Undefined if
   * the state of the server is too long.
   */
  async seal(
    binding: RequestStateBinding,
    approved?: { readonly inner: string | undefined },
  ): Promise<string | undefined> {
    const once = randomBytes(16).toString('base64url');
    const value: ApprovalState = { once, isApproved: approved !== undefined, inner: approved?.inner };
    const state = await this.#states.seal(binding, { round: 1, expiresAtMs: Date.now() + approvalMs, value });
    return state === undefined ? undefined : prefix + state;
  }

  /**
   * Opens the state of a request. Undefined for a state of another request, an old or forged one, and one whose question
   * was answered before.
   */
  async open(text: string, binding: RequestStateBinding): Promise<ApprovalState | undefined> {
    const state = (await this.#states.open<ApprovalState>(binding, text.slice(prefix.length)))?.value;
    if (state === undefined || state.isApproved) return state;
    const mine = randomBytes(16);
    const kept = await this.#values.keep('used', `policy ${state.once}`, mine, approvalMs);
    return kept.equals(mine) ? state : undefined;
  }
}
