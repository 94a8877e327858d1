import { isReason, type Reason } from '../../../protocol/faults.ts';
import { parseOwn } from '../../../protocol/json/scalar.ts';
import { type Message, readGatewayMessage } from '../../../protocol/message/message.ts';
import type { RoundOutcomeStore } from '../../../store/shared/outcomes.ts';

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
  readonly #outcomes: RoundOutcomeStore;
  readonly #call: string;
  readonly #round: number;
  readonly #digest: string;

  /** @param digest the digest of the answers; see `toLegacyAnswers` */
  constructor(outcomes: RoundOutcomeStore, call: string, round: number, digest: string) {
    this.#outcomes = outcomes;
    this.#call = call;
    this.#round = round;
    this.#digest = digest;
  }

  /** Keeps the outcome, and those of earlier rounds, for this many milliseconds. Rejects with `StoreUnavailable`. */
  keep(outcome: KeptOutcome, forMs: number): Promise<void> {
    return this.#outcomes.keep(this.#call, this.#round, format(this.#digest, outcome), forMs);
  }

  /** Finds the kept outcome; a refusal if it belongs to other answers. Rejects with `StoreUnavailable`. */
  async find(): Promise<KeptOutcome | undefined> {
    const kept = await this.#outcomes.find(this.#call, this.#round);
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
