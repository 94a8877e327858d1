import { scanList } from '../protocol/json/scan.ts';
import { scalarAt, valueAt } from '../protocol/json/splice.ts';
import type { Message } from '../protocol/message/message.ts';
import { SparseMap } from '../util/sparse-map.ts';
import type { Call } from './call-table.ts';

/** Requests that only read: a server can answer them twice. */
const harmless: ReadonlySet<string> = new Set([
  'ping',
  'server/discover',
  'tools/list',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'completion/complete',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/get',
  'tasks/list',
  'tasks/result',
]);

/** True for a message that may be sent to a server twice, or to a server that replaces the one that had it. */
export const isHarmless = ({ kind, method }: Message): boolean => kind !== 'request' || harmless.has(method as string);

/** Requests on whose behalf a server asks its client. */
const asking: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read', 'tasks/result']);

/** True if a server can ask its client something on behalf of such a request. */
export const mayRequestInput = (method: string): boolean => asking.has(method);

/** What decides whether a call may be run again. */
type Rerunnable = Pick<Call, 'method' | 'text' | 'hasAsked' | 'rerunAfter' | 'cancelTimer'>;

/** Larger requests are not kept (P8): those of all calls in flight have to wait for a restored server at once. */
const maxKeptBytes = 16 * 1024;

/** A server that lists ever new tools must not fill the memory (P8): those beyond are not run again. */
const maxTools = 10_000;
const maxNameLength = 256;

/** A longer list of tools is not looked into (P8): its tools are not run again. */
const maxListBytes = 1024 * 1024;

/**
 * Says which calls may be run again after their server was lost (docs/design.md, D5): those that only read, and with
 * `rerun: hints` the tools that the server itself declared to be read-only or idempotent. Never one that has asked the
 * client something: it would ask again.
 */
export class RerunPolicy {
  readonly #usesHints: boolean;
  readonly #harmlessTools = new SparseMap<string, true>();

  constructor(mode: 'safe' | 'hints') {
    this.#usesHints = mode === 'hints';
  }

  /** True if the text of a request is to be kept, for a rerun or for what it tells the server. */
  mayNeed(method: string, text: Buffer): boolean {
    if (text.length > maxKeptBytes) return false;
    return harmless.has(method) || (this.#usesHints && method === 'tools/call');
  }

  /** True if this call may be run again, now that its POST broke or its server was lost. */
  allows(
    { method, text, hasAsked, rerunAfter, cancelTimer }: Rerunnable,
    after: NonNullable<Call['rerunAfter']>,
  ): boolean {
    // A second rerun would let one request that its server always dies of drive the session into a crash loop. But a server
    // that is lost breaks POSTs a moment before: that is one loss.
    if (rerunAfter === 'loss' || rerunAfter === after) return false;
    if (text === undefined || hasAsked || cancelTimer !== undefined) return false;
    return harmless.has(method) || (this.#usesHints && this.#isHarmless(scalarAt(text, ['params', 'name'])));
  }

  /** Learns from a list of tools that passes which of them are harmless. */
  answered(method: string, response: Buffer): void {
    if (!this.#usesHints || method !== 'tools/list' || response.length > maxListBytes) return;
    const list = valueAt(response, ['result', 'tools']);
    for (const { start, end } of (list && scanList(list)) ?? []) {
      const tool = (list as Buffer).subarray(start, end);
      const name = scalarAt(tool, ['name']);
      if (typeof name !== 'string') continue;
      const isHarmless = hints.some((hint) => scalarAt(tool, ['annotations', hint]) === true);
      if (!isHarmless) this.#harmlessTools.delete(name);
      else if (this.#harmlessTools.size < maxTools && name.length <= maxNameLength) this.#harmlessTools.set(name, true);
    }
  }

  #isHarmless(tool: unknown): boolean {
    return typeof tool === 'string' && this.#harmlessTools.has(tool);
  }
}

/** What a server says of a tool that can be run twice. */
const hints = ['readOnlyHint', 'idempotentHint'];
