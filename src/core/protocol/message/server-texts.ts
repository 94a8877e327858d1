// What a server writes: messages, what can be corrected or has a stand-in, and noise.
import { hasRoomFor, inOwnTurns, shareOfTurn } from '../../util/timing/work-meter.ts';
import { faultMessage, type Reason } from '../faults.ts';
import {
  hasSoundError,
  mendAnswer,
  mendBytes,
  mendBytesInTurns,
  type OddPart,
  readOddMessage,
  readOddText,
} from './broken/odd-text.ts';
import { changedMessage } from './changed-message.ts';
import {
  createBadResponse,
  isLargeText,
  maxServerDepth,
  progressFastPath,
  type ReadBody,
  type ReadMessage,
  readBody,
  readBodyInTurns,
  readStandIn,
  serverLimits,
  unitsOf,
} from './message.ts';
import type { Message } from './message-type.ts';

/**
 * The texts in portions, of which each fits into the share of a turn. A large text is a portion of its own. Most texts
 * are one portion.
 */
export function portionsOf<T>(items: readonly T[], textOf: (item: T) => Buffer): (readonly T[])[] {
  const portions: (readonly T[])[] = [];
  let from = 0;
  let units = 0;
  for (let index = 0; index < items.length; index += 1) {
    const added = unitsOf(textOf(items[index] as T));
    units += added;
    if (units < shareOfTurn || index === from) continue;
    portions.push(items.slice(from, index));
    from = index;
    units = added;
  }
  portions.push(from === 0 ? items : items.slice(from));
  return portions;
}

/** What a server has sent: its messages in order, and the texts of which something is no message. */
export interface ServerMessages {
  readonly messages: readonly Message[];
  /** The first texts of which something is no message, at most `maxNoiseTexts`. */
  readonly noise: readonly Buffer[];
  /** The number of further such texts, which are only counted. */
  readonly unkeptNoise?: number;
}

/**
 * How many texts of noise one read keeps (P8). A chunk of 64 KiB can hold 32,768 of them, and each is an event of the
 * session. A person who reads the log needs the first ones and their number.
 */
export const maxNoiseTexts = 16;

/**
 * Reports the noise of one or more reads: the first `maxNoiseTexts` texts. The last of them carries the number of the
 * others.
 */
export function reportNoise(
  receiver: { onNoise(text: Buffer, more?: number): void },
  reads: readonly Omit<ServerMessages, 'messages'>[],
): void {
  let last: Buffer | undefined;
  let kept = 0;
  let more = 0;
  for (const { noise, unkeptNoise = 0 } of reads) {
    more += unkeptNoise;
    for (const text of noise) {
      kept += 1;
      if (kept > maxNoiseTexts) more += 1;
      else {
        if (last !== undefined) receiver.onNoise(last);
        last = text;
      }
    }
  }
  if (last === undefined) return;
  if (more > 0) receiver.onNoise(last, more);
  else receiver.onNoise(last);
}

/**
 * Reads texts of a server. An array is split into its messages. Only 2025-03-26 has batches, but dropping one in any
 * revision would leave its requests without an answer. A text that is no valid message is corrected, or an error stands
 * in for the answer that it was to be (`Message.standIn`).
 * @returns a promise if this turn of the event loop has no room for the texts: they are then read in turns of their own
 *   (P8). Whoever reads many texts reads them in portions (`portionsOf`), so that they are delivered in several turns
 */
export function readServerTexts(texts: readonly Buffer[]): ServerMessages | Promise<ServerMessages> {
  return hasRoomFor(unitsOfAll(texts)) ? readSmallTexts(texts) : readInTurns(texts);
}

function unitsOfAll(texts: readonly Buffer[]): number {
  let units = 0;
  for (const text of texts) units += unitsOf(text);
  return units;
}

/** Reads texts of a server at once. Only tests, and whoever has asked the work meter, may call this. */
export function readSmallTexts(texts: readonly Buffer[], found = new FoundMessages()): ServerMessages {
  for (const text of texts) {
    const progress = progressFastPath.read(text, maxServerDepth);
    if (progress !== undefined) {
      found.messages.push(progress);
      continue;
    }
    const body = readBody(text, maxServerDepth, serverLimits);
    const mended = body.ok ? undefined : mendBytes(text);
    if (mended === undefined) found.add(text, body);
    else found.add(mended, readBody(mended, maxServerDepth, serverLimits));
  }
  return found;
}

/** Reads texts as `readServerTexts` does, but keeps the messages of each text apart. */
export function readTextsApart(texts: readonly Buffer[]): ServerMessages[] | Promise<ServerMessages[]> {
  if (hasRoomFor(unitsOfAll(texts))) return texts.map((text) => readSmallTexts([text]));
  const each = texts.map((text) => ({ text, found: new FoundMessages() }));
  return readEach(each).then(() => each.map(({ found }) => found));
}

async function readInTurns(texts: readonly Buffer[]): Promise<ServerMessages> {
  const found = new FoundMessages();
  await readEach(texts.map((text) => ({ text, found })));
  return found;
}

/** Reads texts in turns of their own. */
async function readEach(each: readonly { readonly text: Buffer; readonly found: FoundMessages }[]): Promise<void> {
  for (const portion of portionsOf(each, ({ text }) => text)) {
    const [first] = portion;
    if (first !== undefined && isLargeText(first.text)) await readLarge(first.text, first.found);
    else
      await inOwnTurns(
        () => {
          for (const { text, found } of portion) readSmallTexts([text], found);
          return true;
        },
        unitsOfAll(portion.map(({ text }) => text)),
      );
  }
}

async function readLarge(text: Buffer, found: FoundMessages): Promise<void> {
  const body = await readBodyInTurns(text, maxServerDepth, serverLimits);
  const mended = body.ok ? undefined : await mendBytesInTurns(text);
  if (mended === undefined) found.add(text, body);
  else found.add(mended, await readBodyInTurns(mended, maxServerDepth, serverLimits));
}

/** The messages in texts of a server. */
class FoundMessages implements ServerMessages {
  readonly messages: Message[] = [];
  readonly noise: Buffer[] = [];
  unkeptNoise = 0;

  add(text: Buffer, body: ReadBody): void {
    let isNoise = body.ok ? body.messages.length === 0 : !this.#addParts(text, body.reason);
    if (body.ok)
      for (const read of body.messages) {
        if (!read.ok) isNoise = !this.#addOdd(read) || isNoise;
        else this.messages.push(read.message.isError ? withSoundError(read.message) : read.message);
      }
    if (!isNoise) return;
    if (this.noise.length < maxNoiseTexts) this.noise.push(text);
    else this.unkeptNoise += 1;
  }

  /** Adds stand-ins for the messages in a text that is no JSON, or has a key twice. False if there are none. */
  #addParts(text: Buffer, reason: Reason): boolean {
    if (reason !== 'not_json' && reason !== 'duplicate_key') return false;
    const { problem, parts } = readOddText(text, reason === 'duplicate_key');
    for (const part of parts) this.messages.push(standInFor(part, problem, text));
    return parts.length > 0;
  }

  /** Adds a corrected message, or a stand-in. False if the text is nothing of the kind. */
  #addOdd({ odd }: Extract<ReadMessage, { ok: false }>): boolean {
    if (odd === undefined) return false;
    const { text, problem } = odd;
    const mended = mendAnswer(text);
    const body = mended && readBody(mended, maxServerDepth, serverLimits);
    const [read] = body?.ok ? body.messages : [];
    if (read?.ok) this.messages.push(read.message);
    const part = read?.ok ? undefined : readOddMessage(text);
    const rest = read?.ok === false ? (read.odd?.problem ?? problem) : problem;
    if (part !== undefined) this.messages.push(standInFor(part, rest, text));
    return read?.ok === true || part !== undefined;
  }
}

/**
 * A larger error is replaced (P8). Errors are read again at many places, for their code, message and data. Their walks add
 * up: an error of 8 MiB takes a tenth of a second.
 */
const maxErrorBytes = 512 * 1024;

function withSoundError(message: Message): Message {
  if (message.text.length > maxErrorBytes)
    return readStandIn(faultMessage('response_too_complex', message.id ?? null), { reason: 'response_too_complex' });
  if (hasSoundError(message.text)) return message;
  const mended = mendAnswer(message.text);
  return mended === undefined ? message : changedMessage(message, mended, {});
}

/** How much of an odd text is kept for the log. */
const maxWrittenBytes = 2_048;

function standInFor(part: OddPart, problem: string, text: Buffer): Message {
  const written = Buffer.from(text.subarray(0, maxWrittenBytes));
  if (part.kind === 'response') return createBadResponse(part.id, problem, written);
  const error = { code: -32600, message: `Invalid request: ${problem}.` };
  const refusal = Buffer.from(`{"jsonrpc":"2.0","id":${part.idText},"error":${JSON.stringify(error)}}`);
  return readStandIn('{"jsonrpc":"2.0","id":0,"method":"invalid"}', { reason: 'not_json_rpc', written, refusal });
}
