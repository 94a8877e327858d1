import type { ListSubscriber } from '../backend/list-reader.ts';
import { scalarAt } from '../protocol/json.ts';
import { type Message, memberValue } from '../protocol/message/message.ts';
import { methodOf } from '../protocol/methods/methods.ts';
import { SparseMap } from '../util/sparse-map.ts';
import type { Call } from './session-calls.ts';

/** True for a message that may be sent to a server twice, or again to a replacement of the server that got it. */
export const isHarmless = ({ kind, method }: Message): boolean => kind !== 'request' || isHarmlessMethod(method);

const isHarmlessMethod = (method: string | undefined): boolean => methodOf(method).effect !== 'acts';

/** The largest request that is kept (P8). All calls in flight may have to wait for a restored server at once. */
const maxKeptBytes = 16 * 1024;

/** How many harmless tools are remembered (P8). Calls of further tools are not run again. */
const maxTools = 10_000;
const maxNameLength = 256;

/**
 * Decides which calls of one server may be run again after it was lost (docs/design.md, D5). These are harmless requests.
 * With `rerun: hints` they include calls of tools that the server declared to be read-only or idempotent, in the newest
 * list that any client got. A call whose server has sent the client a request is never run again: the server would send
 * that request again.
 */
export class RerunPolicy {
  readonly #usesHints: boolean;
  readonly #harmlessTools = new SparseMap<string, true>();

  constructor(mode: 'safe' | 'hints' = 'safe') {
    this.#usesHints = mode === 'hints';
  }

  /** Learns from the lists of the server which of its tools are harmless; undefined if that does not matter. */
  get learn(): ListSubscriber | undefined {
    if (!this.#usesHints) return undefined;
    return ({ name, text }, kind) => {
      if (kind !== 'tool') return;
      const isHarmless = hints.some((hint) => scalarAt(text, ['annotations', hint]) === true);
      if (!isHarmless) this.#harmlessTools.delete(name);
      else if (this.#harmlessTools.size < maxTools && name.length <= maxNameLength) this.#harmlessTools.set(name, true);
    };
  }

  /**
   * True if a request must be kept: for a rerun, or because the request sets client state at the server.
   */
  mayNeed({ method, text }: Message): boolean {
    if (text.length > maxKeptBytes) return false;
    return isHarmlessMethod(method) || (this.#usesHints && methodOf(method).names === 'tool');
  }

  /** True if this call may be run again after its POST broke or its server was lost. */
  allows(
    call: Pick<Call, 'method' | 'request' | 'hasAsked' | 'rerunAfter' | 'cancelTimer'>,
    after: NonNullable<Call['rerunAfter']>,
  ): boolean {
    const { method, request, hasAsked, rerunAfter, cancelTimer } = call;
    // With a second rerun, one request that always kills its server would put the session into a crash loop. But a
    // server that is being lost first breaks its POSTs. Both count as one loss.
    if (rerunAfter === 'loss' || rerunAfter === after) return false;
    if (request === undefined || hasAsked || cancelTimer !== undefined) return false;
    return isHarmlessMethod(method) || (this.#usesHints && this.#isHarmless(memberValue(request, 'params', 'name')));
  }

  #isHarmless(tool: unknown): boolean {
    return typeof tool === 'string' && this.#harmlessTools.has(tool);
  }
}

/** The annotations of a tool that can be run twice. */
const hints = ['readOnlyHint', 'idempotentHint'];
