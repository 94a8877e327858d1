import type { BackendEnd } from '../../../core/backend/backend.ts';
import { type CreateInterceptor, Interceptor } from '../../../core/backend/link/link.ts';
import type { RequestId } from '../../../core/protocol/faults.ts';
import {
  noHeaders,
  type RequestClient,
  readForwardedCredentials,
} from '../../../core/protocol/http/forwarded-headers.ts';
import { findRange, replaceParts, scalarAt } from '../../../core/protocol/json.ts';
import { changedMessage, withId } from '../../../core/protocol/message/changed-message.ts';
import {
  type Message,
  memberRange,
  protocolVersionKey,
  readGatewayMessage,
} from '../../../core/protocol/message/message.ts';
import { methodOf } from '../../../core/protocol/methods/methods.ts';
import { clientCapabilitiesKey } from '../../../core/protocol/modern/envelope.ts';
import { BoundedMap } from '../../../core/util/bounded-map.ts';

/** Options of the cache of one server. */
export interface ListCacheOptions {
  /** How long lists of a legacy server may be kept, in milliseconds; 0 to keep none. A modern server says so itself. */
  readonly legacyTtlMs: number;
  /** The lists of the server may have changed. */
  readonly onChanged?: () => void;
}

/** A larger list is not kept, and neither are more lists or bytes in all (P8): a client can ask for many pages. */
const maxListBytes = 1024 * 1024;
const maxTotalBytes = 16 * 1024 * 1024;
const maxLists = 1_000;
/** No list is kept longer than this, whatever its server says. */
const maxTtlMs = 60 * 60 * 1000;

/**
 * Keeps the lists of one server for its modern clients, for as long as the server allows (2026-07-28,
 * server/utilities/caching). Each user has lists of its own, even where the server calls them public: a server cannot
 * know who uses the gateway (P11). All lists are dropped when one of them changes, and when a process ends by itself.
 */
export class ListCache {
  readonly #options: ListCacheOptions;
  readonly #kept = new BoundedMap<string, { readonly response: Message; readonly expiresAt: number }>(maxLists, {
    maxBytes: maxTotalBytes,
    maxEntryBytes: maxListBytes,
    bytesOf: (_, { response }) => response.text.length,
  });
  /** Incremented when all lists are dropped: a list that was requested before that is not kept. */
  #generation = 0;

  constructor(options: ListCacheOptions) {
    this.#options = options;
  }

  /** Finds the kept answer to a request, with the time that is left of it. */
  find(request: Message, client: RequestClient): Message | undefined {
    if (!isKept(request)) return undefined;
    const key = keyOf(request, client);
    const kept = key === undefined ? undefined : this.#kept.get(key);
    if (kept === undefined || key === undefined) return undefined;
    const leftMs = Math.floor(kept.expiresAt - performance.now());
    if (leftMs > 0) return withTtl(withId(kept.response, request.id as RequestId), leftMs);
    this.#kept.delete(key);
    return undefined;
  }

  /**
   * Returns a function that takes the response to a list request before it is sent, keeps it if it may be kept, and
   * returns what the client gets. Undefined for other requests.
   */
  observe(request: Message, client: RequestClient, isLegacy: boolean): ((response: Message) => Message) | undefined {
    if (!isKept(request)) return undefined;
    if (isLegacy && this.#options.legacyTtlMs === 0) return undefined;
    const key = keyOf(request, client);
    if (key === undefined) return undefined;
    const generation = this.#generation;
    return (response) => {
      if (response.isError || generation !== this.#generation) return response;
      const answer = isLegacy ? withTtl(response, this.#options.legacyTtlMs) : response;
      this.#keep(key, answer);
      return answer;
    };
  }

  /** Drops all lists: one of them has changed, or the server is another one. */
  clear(): void {
    this.#generation += 1;
    this.#kept.clear();
    this.#options.onChanged?.();
  }

  /**
   * The interceptor of the server's backends that drops the lists when one of them shows that they may have changed.
   * @param isLegacy true for backends of legacy sessions, which are watched only if their lists are kept
   */
  watch(isLegacy = false): readonly CreateInterceptor[] {
    if (isLegacy && this.#options.legacyTtlMs === 0) return [];
    return [() => new ListWatch(this)];
  }

  #keep(key: string, response: Message): void {
    const { text } = response;
    if (text.length > maxListBytes) return; // nothing is looked for in it either (P8)
    const ttlMs = scalarAt(text, ['result', 'ttlMs']);
    const type = scalarAt(text, ['result', 'resultType']);
    if (typeof ttlMs !== 'number' || !(ttlMs > 0) || type !== 'complete') return;
    const own = readGatewayMessage(Buffer.from(text));
    this.#kept.set(key, { response: own, expiresAt: performance.now() + Math.min(ttlMs, maxTtlMs) });
  }
}

/** Notes the changes of lists and the end of one backend. */
class ListWatch extends Interceptor {
  readonly #cache: ListCache;

  constructor(cache: ListCache) {
    super();
    this.#cache = cache;
  }

  override onMessages(messages: readonly Message[]): readonly Message[] {
    if (messages.some(isListChange)) this.#cache.clear();
    return messages;
  }

  override onOver(end: BackendEnd): void {
    if (end.reason !== 'closed') this.#cache.clear();
  }
}

/** True for a request for a list that is kept: it is the same until its change is announced, and needs no process. */
const isKept = ({ method }: Message): boolean => methodOf(method).list?.changed !== undefined;

/** True for a notification that a list has changed. */
export const isListChange = ({ kind, method }: Message): boolean =>
  kind === 'notification' && methodOf(method).changedLists !== undefined;

/** A longer key is not kept (P8): the client chooses its cursor and its capabilities. */
const maxKeyLength = 4_096;

/** What a list depends on; undefined if the request has parameters whose effect is not known. */
function keyOf(request: Message, { principal, forwarded = noHeaders }: RequestClient): string | undefined {
  const params = request.memberRanges.params?.keys ?? [];
  if (params.some((key) => key !== 'cursor' && key !== '_meta')) return undefined;
  const textOf = (level: 'params' | 'meta', key: string): string | undefined => {
    const range = memberRange(request, level, key);
    return range && request.text.toString('utf8', range.start, range.end);
  };
  const { issuer, subject, client, credentials } = principal;
  const user = [issuer, subject, client, credentials, readForwardedCredentials(forwarded)];
  const form = [textOf('meta', protocolVersionKey), textOf('meta', clientCapabilitiesKey), textOf('params', 'cursor')];
  const key = JSON.stringify([request.method, user, form]);
  return key.length > maxKeyLength ? undefined : key;
}

/** The response with another time to live. A list that is too large to be kept has none. */
function withTtl(response: Message, ttlMs: number): Message {
  if (response.text.length > maxListBytes) return response;
  const range = findRange(response.text, ['result', 'ttlMs']);
  if (typeof range !== 'object') return response;
  return changedMessage(response, replaceParts(response.text, [{ ...range, by: String(ttlMs) }]), {});
}
