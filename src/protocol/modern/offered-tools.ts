import { actOnEach } from '../../util/timing/work-meter.ts';
import { scanList } from '../json/scan.ts';
import { findRange, replaceParts, scalarAt } from '../json/splice.ts';
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
 * @returns `unreadable` if the list has too many tools
 */
export async function offeredTools(text: Buffer): Promise<OfferedTools | 'unreadable'> {
  const range = mayMirror(text) ? findRange(text, ['result', 'tools']) : 'absent';
  if (typeof range !== 'object' || text[range.start] !== openBracket) return { text, hidden: [] };
  const list = text.subarray(range.start, range.end);
  const tools = scanList(list);
  if (tools === undefined) return 'unreadable';
  const offered: string[] = [];
  const hidden: string[] = [];
  await actOnEach(tools, unitsOfTool, ({ start, end }) => {
    const tool = list.subarray(start, end);
    if (readToolParams(tool) === undefined) hidden.push(readName(tool));
    else offered.push(tool.toString());
  });
  return hidden.length === 0
    ? { text, hidden }
    : { text: replaceParts(text, [{ ...range, by: `[${offered.join()}]` }]), hidden };
}

const openBracket = 0x5b;

/** A name that is not a string is reported as empty: its value may have any type and size. */
function readName(tool: Buffer): string {
  const name = scalarAt(tool, ['name']);
  return typeof name === 'string' ? name.slice(0, maxNameLength) : '';
}
