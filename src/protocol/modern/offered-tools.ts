import { scanList } from '../json/scan.ts';
import { findRange, replaceParts } from '../json/splice.ts';
import { mayMirror, readParamHeaders } from './param-headers.ts';

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
 * unchanged (P1).
 */
export function offeredTools(text: Buffer): OfferedTools {
  const range = mayMirror(text) ? findRange(text, ['result', 'tools']) : 'absent';
  if (typeof range !== 'object') return { text, hidden: [] };
  const list = text.subarray(range.start, range.end);
  const offered: string[] = [];
  const hidden: string[] = [];
  for (const { start, end } of scanList(list) ?? []) {
    const tool = list.toString('utf8', start, end);
    if (mayMirror(tool) && !isOffered(tool)) hidden.push(readName(tool));
    else offered.push(tool);
  }
  return hidden.length === 0
    ? { text, hidden }
    : { text: replaceParts(text, [{ ...range, by: `[${offered.join()}]` }]), hidden };
}

const isOffered = (tool: string): boolean =>
  readParamHeaders((JSON.parse(tool) as { inputSchema?: unknown } | null)?.inputSchema) !== undefined;

/** A name that is not a string is reported as empty: its value may have any type and size. */
function readName(tool: string): string {
  const { name } = JSON.parse(tool) as { name?: unknown };
  return typeof name === 'string' ? name.slice(0, maxNameLength) : '';
}
