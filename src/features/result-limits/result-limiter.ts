// src/features/result-limits: cuts long texts in the results of tools, and lets clients read them as resources.

import type { ResultLimitOptions } from '../../app/features/calls.ts';
import { readSender } from '../../core/auth/request-sender.ts';
import type { OpenOptions, RequestIds, Sent } from '../../core/backend/backend.ts';
import { AnswerWatcher } from '../../core/backend/link/answer-watcher.ts';
import type { Outgoing } from '../../core/backend/link/link.ts';
import type { Reason, RequestId } from '../../core/protocol/faults.ts';
import { findRange, type Replacement, replaceParts, scalarAt, valueAt } from '../../core/protocol/json.ts';
import { sessionRevision } from '../../core/protocol/known-revisions.ts';
import { changedMessage } from '../../core/protocol/message/changed-message.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import { createMessage, type Message, memberValue, readOne } from '../../core/protocol/message/message.ts';
import { listMethods } from '../../core/protocol/methods/methods.ts';
import { ifUnavailable } from '../../core/store/store-unavailable.ts';
import { detach } from '../../core/util/boundary.ts';
import { boundaryIn, type LongText, longTextsIn } from './cut-text.ts';
import { isKeptText, type KeptTexts, keptMs, type TextOwner } from './kept-texts.ts';

/** Room for the sentence at the end of a cut text. */
const noticeBytes = 256;

/** Where the contents of a tool's result are, by the method that brings it. */
const contentOf: ReadonlyMap<string | undefined, readonly string[]> = new Map([
  ['tools/call', ['result', 'content']],
  ['tasks/result', ['result', 'content']],
  ['tasks/get', ['result', 'result', 'content']],
]);

/** The lists of resources. A server without resources has no answer for them. */
const resourceLists = new Map(
  listMethods.filter(({ name }) => name.startsWith('resources/')).map(({ name, list }) => [name, list.key] as const),
);

/** A request at the server whose answer is changed. */
interface Watched {
  readonly method: string;
  readonly owner: TextOwner | undefined;
  readonly knowsLinks: boolean;
}

/** The limiter of one backend. */
export class ResultLimiter extends AnswerWatcher<Watched> {
  readonly #options: ResultLimitOptions;
  readonly #texts: KeptTexts;
  readonly #opening: OpenOptions | undefined;
  /** False for a client of a session whose revision has no resource links. */
  #knowsLinks = true;
  /** True if the server itself has no resources. */
  #lacksResources = false;

  constructor(options: ResultLimitOptions, texts: KeptTexts, opening: OpenOptions | undefined) {
    super();
    this.#options = options;
    this.#texts = texts;
    this.#opening = opening;
  }

  override onSend(outgoing: Outgoing): Outgoing | Sent {
    const { message } = outgoing;
    const { method, id } = message;
    if (message.kind !== 'request' || id == null || method === undefined) return outgoing;
    if (method === 'initialize') {
      const version = scalarAt(message.text, ['params', 'protocolVersion']);
      this.#knowsLinks =
        this.#opening?.isGroup === true || (typeof version === 'string' && sessionRevision(version).linksResources);
    }
    if (method === 'resources/read') {
      const uri = memberValue(message, 'params', 'uri');
      if (!isKeptText(uri)) return outgoing;
      detach('backend', this.#read(message, uri, this.#ownerOf(outgoing)));
      return 'sent';
    }
    const key = this.#lacksResources ? resourceLists.get(method) : undefined;
    if (key !== undefined) {
      const more = message.isModern ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {};
      this.answer(createMessage({ id, result: { [key]: [], ...more } }));
      return 'sent';
    }
    const isWatched = method === 'initialize' || method === 'server/discover' || contentOf.has(method);
    if (isWatched && this.#options.maxBytes !== undefined)
      this.note(message, {
        method,
        owner: this.#ownerOf(outgoing),
        knowsLinks: message.isModern || this.#knowsLinks,
      });
    return outgoing;
  }

  protected override onAnswer(answer: Message, watched: Watched, related: RequestIds | undefined): Message | undefined {
    const path = contentOf.get(watched.method);
    if (answer.isError) return answer;
    if (path === undefined) return this.#withResources(answer);
    const long = this.#longTextsOf(answer, path);
    if (long.length === 0) return answer;
    this.keep(answer, related, this.#cut(answer, long, watched), 'internal');
    return undefined;
  }

  /** Who may read what the request brings; undefined if nobody is known. */
  #ownerOf({ headers }: Outgoing): TextOwner | undefined {
    return readSender(headers)?.principal ?? this.#opening?.principal;
  }

  #longTextsOf({ text }: Message, path: readonly string[]): readonly LongText[] {
    const { maxBytes = Number.POSITIVE_INFINITY } = this.#options;
    return text.length <= maxBytes ? [] : longTextsIn(text, path, maxBytes);
  }

  /** The answer to a handshake, in which the server has resources: the whole texts are some. */
  #withResources(message: Message): Message {
    const { text } = message;
    const range = findRange(text, ['result', 'capabilities']);
    if (typeof range !== 'object' || valueAt(text, ['result', 'capabilities', 'resources']) !== undefined)
      return message;
    this.#lacksResources = true;
    const isEmpty = /^\{\s*\}$/.test(text.toString('latin1', range.start, Math.min(range.end, range.start + 64)));
    const at = range.start + 1;
    return changedMessage(
      message,
      replaceParts(text, [{ start: at, end: at, by: `"resources":{}${isEmpty ? '' : ','}` }]),
      {},
    );
  }

  /** Keeps the whole texts, and resolves with the result whose texts are cut. */
  async #cut(message: Message, long: readonly LongText[], { owner, knowsLinks }: Watched): Promise<Message> {
    const { maxBytes = 0 } = this.#options;
    const { text } = message;
    const parts: Replacement[] = [];
    for (const { content, start, end } of long) {
      const whole = text.subarray(start, end);
      const uri = owner && (await this.#texts.keep(whole, owner));
      const cut = boundaryIn(whole, maxBytes - noticeBytes);
      const notice = `\n\n[${noticeOf(cut, whole.length, uri)}]`;
      parts.push({ start: start + cut, end, by: JSON.stringify(notice).slice(1, -1) });
      if (uri !== undefined && knowsLinks)
        parts.push({ start: content.end, end: content.end, by: `,${JSON.stringify(linkTo(uri, whole.length))}` });
    }
    return changedMessage(message, replaceParts(text, parts), {});
  }

  async #read({ id, isModern }: Message, uri: string, owner: TextOwner | undefined): Promise<void> {
    const found = await this.#find(uri, owner);
    if (typeof found === 'string') return this.answer(createFaultResponse(found, id as RequestId));
    const more = isModern ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {};
    const head = JSON.stringify({
      jsonrpc: '2.0',
      id,
      result: { ...more, contents: [{ uri, mimeType: 'text/plain' }] },
    });
    const end = '}]}}';
    const before = `${head.slice(0, -end.length)},"text":"`;
    const answer = readOne(Buffer.concat([Buffer.from(before), found, Buffer.from(`"${end}`)]));
    this.answer(answer ?? createFaultResponse('result_expired', id as RequestId));
  }

  async #find(uri: string, owner: TextOwner | undefined): Promise<Buffer | Reason> {
    return (
      (owner && (await this.#texts.find(uri, owner).catch(ifUnavailable('store_unavailable')))) ?? 'result_expired'
    );
  }
}

const inKiB = (bytes: number): string => `${Math.ceil(bytes / 1024).toLocaleString('en')} KiB`;

const noticeOf = (cut: number, whole: number, uri: string | undefined): string =>
  `Cut by the gateway after ${inKiB(cut)} of ${inKiB(whole)}. ${
    uri === undefined
      ? 'The rest is not kept: ask for less.'
      : `For ${keptMs / 60_000} minutes, the whole text is the resource ${uri}`
  }`;

/** A link to the whole text (2025-11-25, server/tools, "Resource Links"). */
const linkTo = (uri: string, size: number): object => ({
  type: 'resource_link',
  uri,
  name: 'whole-text',
  description: 'The whole text of the result that was cut',
  mimeType: 'text/plain',
  size,
});
