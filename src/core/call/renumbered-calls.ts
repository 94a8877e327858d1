import type { RequestId } from '../protocol/faults.ts';
import type { RenumberedIds } from '../protocol/modern/renumber.ts';
import { BoundedMap } from '../util/bounded-map.ts';

/** How many progress tokens are remembered after the answers (P8): servers report progress late. */
const maxLateTokens = 64;

interface NumberedCall {
  /** The progress token that the server has. */
  readonly progressToken: RequestId | undefined;
}

/**
 * The calls of a session that its server knows under numbers of the gateway: the client uses an id twice, or one that can
 * be the gateway's own (docs/decisions/0156). Most sessions have none.
 */
export class RenumberedCalls<C extends NumberedCall> {
  /** By the client's id, oldest first. */
  readonly #byClientId = new Map<RequestId, readonly C[]>();
  /** The client's tokens, by the tokens that the server has. */
  readonly #tokens = new Map<RequestId, RenumberedIds>();
  /** The same for answered calls, oldest first. */
  readonly #lateTokens = new BoundedMap<RequestId, RenumberedIds>(maxLateTokens);

  add(call: C, ids: RenumberedIds): void {
    this.#byClientId.set(ids.clientId, [...this.of(ids.clientId), call]);
    if (call.progressToken !== undefined) this.#tokens.set(call.progressToken, ids);
  }

  remove(call: C, ids: RenumberedIds): void {
    const others = this.of(ids.clientId).filter((each) => each !== call);
    if (others.length > 0) this.#byClientId.set(ids.clientId, others);
    else this.#byClientId.delete(ids.clientId);
    if (call.progressToken === undefined) return;
    this.#tokens.delete(call.progressToken);
    this.#lateTokens.set(call.progressToken, ids);
  }

  /** The calls with this id of the client, oldest first. */
  of(clientId: RequestId): readonly C[] {
    return this.#byClientId.get(clientId) ?? [];
  }

  /** The client's token for one that the server has; undefined if the server has the client's own. */
  tokenOf(token: RequestId): RenumberedIds | undefined {
    return this.#tokens.get(token) ?? this.#lateTokens.get(token);
  }
}
