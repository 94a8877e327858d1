import { scanList } from '../json/scan.ts';
import { findRange, replaceParts } from '../json/splice.ts';
import { mayMirror, readParamHeaders } from './param-headers.ts';

/** A list of tools as a client over HTTP may offer it, and the names of those that were left out. */
export interface OfferedTools {
  readonly text: Buffer;
  readonly hidden: readonly string[];
}

/** So much of a name is told. A tool that breaks the rules may have any. */
const maxName = 128;

/**
 * Leaves out of a response to `tools/list` the tools whose `x-mcp-header` breaks the rules: a client over HTTP must not
 * offer them (2026-07-28, basic/transports/streamable-http, "Schema Extension"). The text of all others stays as it is (P1).
 */
export function offeredTools(text: Buffer): OfferedTools {
  const place = mayMirror(text) ? findRange(text, ['result', 'tools']) : 'absent';
  if (typeof place !== 'object') return { text, hidden: [] };
  const list = text.subarray(place.start, place.end);
  const offered: string[] = [];
  const hidden: string[] = [];
  for (const { start, end } of scanList(list) ?? []) {
    const tool = list.toString('utf8', start, end);
    if (mayMirror(tool) && !isOffered(tool)) hidden.push(nameOf(tool));
    else offered.push(tool);
  }
  return hidden.length === 0
    ? { text, hidden }
    : { text: replaceParts(text, [{ ...place, by: `[${offered.join()}]` }]), hidden };
}

const isOffered = (tool: string): boolean =>
  readParamHeaders((JSON.parse(tool) as { inputSchema?: unknown } | null)?.inputSchema) !== undefined;

/** A name that is no string is told as empty: its value may be of any kind and size. */
function nameOf(tool: string): string {
  const { name } = JSON.parse(tool) as { name?: unknown };
  return typeof name === 'string' ? name.slice(0, maxName) : '';
}
