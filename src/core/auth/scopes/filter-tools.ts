import {
  findRange,
  type Replacement,
  replaceParts,
  SoughtKey,
  scalarAt,
  scanList,
  sortByStart,
} from '../../protocol/json.ts';
import { idOfLargeText } from '../../protocol/message/broken/stand-in.ts';
import { createFaultResponse } from '../../protocol/message/gateway-fault.ts';
import { boundedWalks } from '../../util/timing/work-meter.ts';

/** Returns true if a client may call a tool. */
export type MayCall = (tool: string) => boolean;

const toolsKey = new SoughtKey('tools');

/** Filters the text of a response, or of a JSON array of responses. Other texts stay the same. */
export function filterTools(text: Buffer, mayCall: MayCall): Buffer {
  if (!toolsKey.mayBeIn(text)) return text;
  if (text[0] !== openingBracket) return filterResponse(text, mayCall);
  const responses = scanList(text);
  if (responses === undefined) return createFaultResponse('list_unreadable', null).text;
  const changes = responses.flatMap((range): Replacement[] => {
    const before = text.subarray(range.start, range.end);
    const after = filterResponse(before, mayCall);
    return after === before ? [] : [{ ...range, by: after.toString() }];
  });
  return changes.length === 0 ? text : replaceParts(text, changes);
}

/**
 * Filters one response. A response with `result.tools` is a list of tools, whichever request it answers: after the loss
 * of an instance, nobody knows the request. Tools that stay keep their text (P1).
 */
function filterResponse(text: Buffer, mayCall: MayCall): Buffer {
  const filtered = boundedWalks(() => filterList(text, mayCall));
  if (filtered !== undefined && filtered !== 'too_much_work') return filtered;
  return createFaultResponse('list_unreadable', idOfLargeText(text) ?? null).text;
}

/** Undefined if the list cannot be read. */
function filterList(text: Buffer, mayCall: MayCall): Buffer | undefined {
  const range = findRange(text, ['result', 'tools']);
  if (range === 'absent') return text;
  const list = range === 'duplicate_key' ? undefined : text.subarray(range.start, range.end);
  const tools = list && scanList(list);
  if (range === 'duplicate_key' || list === undefined || tools === undefined) return undefined;
  const kept = tools
    .map(({ start, end }) => list.subarray(start, end))
    // A name that is no string, or is there twice, cannot be checked.
    .filter((tool) => {
      const name = scalarAt(tool, ['name']);
      return typeof name === 'string' && mayCall(name);
    });
  const changes: Replacement[] = [];
  if (kept.length < tools.length) changes.push({ ...range, by: `[${kept.map(String).join()}]` });
  // No cache may give one user's list to another.
  const scope = findRange(text, ['result', 'cacheScope']);
  if (typeof scope === 'object') changes.push({ ...scope, by: '"private"' });
  return changes.length === 0 ? text : replaceParts(text, sortByStart(changes));
}

const openingBracket = 0x5b;
