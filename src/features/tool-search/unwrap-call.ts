import { findRange, replaceParts, scalarAt, sortByStart } from '../../core/protocol/json.ts';
import { changedMessage } from '../../core/protocol/message/changed-message.ts';
import { type Message, memberRange, memberValue } from '../../core/protocol/message/message.ts';
import type { UnwrappedCall } from '../../core/server/server.ts';
import { callTool } from './search-tools.ts';

/**
 * The call that a client makes through `call_tool`, with the tool's own name and arguments, whose text stays as it is (P1).
 * Undefined for any other message, and for a call that names no tool.
 */
export function unwrapCall(message: Message): UnwrappedCall | undefined {
  if (message.kind !== 'request' || message.method !== 'tools/call') return undefined;
  if (memberValue(message, 'params', 'name') !== callTool) return undefined;
  const [name, given] = [memberRange(message, 'params', 'name'), memberRange(message, 'params', 'arguments')];
  if (name === undefined || given === undefined) return undefined;
  const inside = message.text.subarray(given.start, given.end);
  const tool = scalarAt(inside, ['name']);
  if (typeof tool !== 'string' || tool === callTool) return undefined;
  const own = findRange(inside, ['arguments']);
  if (own === 'duplicate_key' || (typeof own === 'object' && inside[own.start] !== openBrace)) return undefined;
  const by = own === 'absent' ? '{}' : inside.toString('utf8', own.start, own.end);
  const parts = sortByStart([
    { ...name, by: JSON.stringify(tool) },
    { ...given, by },
  ]);
  return { name: tool, message: changedMessage(message, replaceParts(message.text, parts), {}) };
}

const openBrace = 0x7b;
