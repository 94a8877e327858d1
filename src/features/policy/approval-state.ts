import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { StateKeys } from '../../core/keys/state-keys.ts';
import { parseOwn } from '../../core/protocol/json.ts';
import type { Values } from '../../core/store/shared/values.ts';
import { isObject } from '../../core/util/is-object.ts';
import type { AskedRequest } from './question.ts';

/** How long a person may take for an approval. */
export const approvalMs = 10 * 60_000;

/** What a modern client brings back with an approved request (2026-07-28, basic/patterns/mrtr, "requestState"). */
interface ApprovalState {
  /** The request that was or is to be approved: nothing else can be sent with the state. */
  readonly digest: string;
  readonly expiresAt: number;
  /** Each question can be answered once. */
  readonly once: string;
  /** True if the request was approved before, and the server itself has asked for input since. */
  readonly isApproved: boolean;
  /** The state of the server. */
  readonly inner?: string | undefined;
}

const prefix = 'policy.';

/** True for a state that the guard has made, or that pretends to be one. */
export const isApprovalState = (state: unknown): state is string =>
  typeof state === 'string' && state.startsWith(prefix);

/** Names a request of one sender, with its arguments. */
export const digestOf = ({ sender, ...asked }: AskedRequest, content: Buffer | undefined): string =>
  createHash('sha256')
    .update(JSON.stringify([asked, sender?.principal ?? {}]))
    .update(content ?? '')
    .digest('base64url');

/** Makes and checks the states of approvals. All instances have the keys, so the answer may come to any of them. */
export class ApprovalStates {
  readonly #keys: StateKeys;
  readonly #values: Pick<Values, 'keep'>;

  constructor(keys: StateKeys, values: Pick<Values, 'keep'>) {
    this.#keys = keys;
    this.#values = values;
  }

  /** Makes the state of a request that waits for its approval, or (`approved`) for input that its server wants. */
  async seal(digest: string, approved?: { readonly inner: string | undefined }): Promise<string> {
    const state: ApprovalState = {
      digest,
      expiresAt: Date.now() + approvalMs,
      once: randomBytes(16).toString('base64url'),
      isApproved: approved !== undefined,
      inner: approved?.inner,
    };
    const content = Buffer.from(JSON.stringify(state)).toString('base64url');
    const [key] = await this.#keys.all();
    return `${prefix}${content}.${sign(key, content)}`;
  }

  /**
   * Opens the state of a request. Undefined for a state of another request, an old or forged one, and one whose question
   * was answered before.
   */
  async open(text: string, digest: string): Promise<Pick<ApprovalState, 'isApproved' | 'inner'> | undefined> {
    const [content = '', signature = '', ...rest] = text.slice(prefix.length).split('.');
    if (rest.length > 0 || !(await this.#isSigned(content, signature))) return undefined;
    const state = parseOwn(Buffer.from(content, 'base64url')) as ApprovalState;
    if (!isObject(state) || state.digest !== digest || state.expiresAt < Date.now()) return undefined;
    if (state.isApproved) return state;
    const mine = randomBytes(16);
    const kept = await this.#values.keep('used', `policy ${state.once}`, mine, approvalMs);
    return kept.equals(mine) ? state : undefined;
  }

  async #isSigned(content: string, signature: string): Promise<boolean> {
    const isBy = (key: Buffer): boolean => {
      const expected = Buffer.from(sign(key, content));
      const given = Buffer.from(signature);
      return expected.length === given.length && timingSafeEqual(expected, given);
    };
    return (await this.#keys.all()).some(isBy) || (await this.#keys.reread()).some(isBy);
  }
}

const sign = (key: Buffer, content: string): string =>
  createHmac('sha256', key).update(`policy approval ${content}`).digest('base64url');
