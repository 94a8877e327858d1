import { isReason, type Reason } from '../../../../core/protocol/faults.ts';
import { parseOwn } from '../../../../core/protocol/json.ts';
import { type Message, readGatewayMessage } from '../../../../core/protocol/message/message.ts';
import type { Values } from '../../../../core/store/shared/shared-data.ts';

/**
 * The answer to a client: a response under some id with its HTTP status, or an error of the gateway with its `data`.
 */
export type KeptOutcome =
  | { readonly response: Message; readonly status: number }
  | { readonly reason: Reason; readonly data?: Record<string, unknown> | undefined };

/**
 * The outcome of a round of input, for every request that carries the same answers (2026-07-28, basic/patterns/mrtr).
 */
export class RoundOutcome {
  readonly #values: Values;
  readonly #name: string;
  readonly #digest: string;

  /** @param digest the digest of the answers; see `toLegacyAnswers` */
  constructor(values: Values, call: string, round: number, digest: string) {
    this.#values = values;
    this.#name = `${call} ${round}`;
    this.#digest = digest;
  }

  /**
   * Keeps the outcome for this many milliseconds, unless one is kept already. Rejects with `StoreUnavailable`.
   */
  async keep(outcome: KeptOutcome, forMs: number): Promise<void> {
    await this.#values.keep('outcome', this.#name, format(this.#digest, outcome), forMs);
  }

  /** Finds the kept outcome; a refusal if it belongs to other answers. Rejects with `StoreUnavailable`. */
  async find(): Promise<KeptOutcome | undefined> {
    const kept = await this.#values.get('outcome', this.#name);
    return kept && read(kept, this.#digest);
  }
}

const newline = 0x0a;

/** Encodes an outcome as a line of JSON, followed by the unchanged text. */
function format(digest: string, outcome: KeptOutcome): Buffer {
  const { response, ...rest } = 'response' in outcome ? outcome : { response: undefined, ...outcome };
  const head = Buffer.from(`${JSON.stringify({ digest, ...rest })}\n`);
  return response === undefined ? head : Buffer.concat([head, response.text]);
}

function read(kept: Buffer, expectedDigest: string): KeptOutcome {
  const end = kept.indexOf(newline);
  const { digest, status, reason, data } = parseOwn(kept.subarray(0, end)) as Record<string, unknown>;
  if (digest !== expectedDigest) return { reason: 'bad_request_state' };
  if (isReason(reason)) return { reason, data: data as Record<string, unknown> | undefined };
  return { response: readGatewayMessage(kept.subarray(end + 1)), status: Number(status) };
}
