import { actOnEach, boundedWalks, hasRoomFor, inOwnTurns } from '../../util/timing/work-meter.ts';
import { replaceParts, scalarAt } from '../json.ts';
import { findList, readItems } from '../list-page.ts';
import { mayMirror, readToolParams, unitsOfTool } from './param-headers.ts';

/** A list of tools that a client over HTTP may offer, and the names of the removed tools. */
export interface OfferedTools {
  readonly text: Buffer;
  readonly hidden: readonly string[];
}

/** Names are reported up to this length. A tool that breaks the rules may have any name. */
const maxNameLength = 128;

/**
 * Removes tools whose `x-mcp-header` breaks the rules from a response to `tools/list`. A client over HTTP must not
 * offer them (2026-07-28, basic/transports/streamable-http, "Schema Extension"). The text of all other tools stays
 * unchanged (P1). A long list is read in several turns of the event loop (P8).
 * @returns `unreadable` if the list cannot be read with certainty, or is too large or too complex
 */
export async function offeredTools(text: Buffer): Promise<OfferedTools | 'unreadable'> {
  if (!mayMirror(text)) return { text, hidden: [] };
  if (!hasRoomFor(text.length)) await inOwnTurns(() => true, text.length);
  const found = boundedWalks(() => {
    const list = findList(text, 'tools');
    if (typeof list !== 'object' || text[list.start] !== openBracket) return list;
    return { list, items: readItems(text, list) };
  });
  if (found === 'unreadable' || found === 'too_much_work') return 'unreadable';
  if (typeof found !== 'object' || !('items' in found)) return { text, hidden: [] };
  const { list, items } = found;
  if (items === undefined) return 'unreadable';
  const offered: string[] = [];
  const hidden: string[] = [];
  await actOnEach(items, unitsOfTool, ({ start, end }) => {
    const tool = text.subarray(start, end);
    let name = '';
    const isOffered = boundedWalks(() => {
      if (readToolParams(tool) !== undefined) return true;
      name = readName(tool);
      return false;
    });
    if (isOffered === true) offered.push(tool.toString());
    else hidden.push(name);
  });
  return hidden.length === 0
    ? { text, hidden }
    : { text: replaceParts(text, [{ ...list, by: `[${offered.join()}]` }]), hidden };
}

const openBracket = 0x5b;

/** A name that is not a string is reported as empty: its value may have any type and size. */
function readName(tool: Buffer): string {
  const name = scalarAt(tool, ['name']);
  return typeof name === 'string' ? name.slice(0, maxNameLength) : '';
}
