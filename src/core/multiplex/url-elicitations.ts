import { errorCodeIn, scalarAt, scanList, valueAt } from '../protocol/json.ts';
import type { Message } from '../protocol/message/message.ts';
import { budgetOfTexts } from '../util/bounded-map.ts';
import { OwnedTable } from './owned-table.ts';

/** The notification that a user has answered a question at a URL (2025-11-25, client/elicitation). */
export const elicitationComplete = 'notifications/elicitation/complete';

/** The code of an error that names questions to answer at a URL before the request is sent again. */
const elicitationRequired = -32042;

/** How many questions are remembered until the server reports their end, their bytes, and the bytes of an id (P8). */
const maxElicitations = 256;
const maxElicitationsBytes = 64 * 1024;
const maxIdBytes = 1_024;

/** An error names few questions (P8). In a longer one, and in a longer list, none is looked for. */
const maxErrorBytes = 64 * 1024;
const maxNamed = 16;

/**
 * Whose the questions are that servers want to be answered at a URL. The report of an answer names only the id of the
 * question, which the server has chosen. An id keeps the owner that it was seen with first (P11).
 */
export class UrlElicitations<O> {
  readonly #owners = new OwnedTable<O, string>(maxElicitations, budgetOfTexts(maxElicitationsBytes, maxIdBytes));

  /** A server's message may name questions of this owner: it is a request, or an error response. */
  note(owner: O, message: Message): void {
    for (const id of namedIn(message)) this.#owners.claim(owner, id, true);
  }

  /** The owner of the question that a notification reports; undefined if it is not known. */
  ownerOf({ text }: Message): O | undefined {
    const id = scalarAt(text, ['params', 'elicitationId']);
    return typeof id === 'string' ? this.#owners.ownerOf(id) : undefined;
  }

  /** The questions of an owner belong to nobody any more. */
  release(owner: O): void {
    this.#owners.release(owner);
  }
}

/** The ids of the questions that a message names. */
function namedIn({ kind, method, isError, text }: Message): readonly string[] {
  if (kind === 'request') {
    const id = method === 'elicitation/create' ? scalarAt(text, ['params', 'elicitationId']) : undefined;
    return typeof id === 'string' ? [id] : [];
  }
  if (!isError || text.length > maxErrorBytes || errorCodeIn(text) !== elicitationRequired) return [];
  const list = valueAt(text, ['error', 'data', 'elicitations']);
  const ranges = (list && scanList(list, maxNamed)) ?? [];
  return ranges.flatMap(({ start, end }) => {
    const id = list && scalarAt(list.subarray(start, end), ['elicitationId']);
    return typeof id === 'string' ? [id] : [];
  });
}
