import { createHash } from 'node:crypto';
import { isObject } from '../util/is-object.ts';
import { parseBounded } from './json.ts';

/** The members of a tool that tell a model what the tool is. Its name is not one of them: a view changes it. */
export const definingMembers = ['title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const;

type DefiningMember = (typeof definingMembers)[number];

/** The hashes of the members that a tool has. Two tools with the same hashes have the same definition. */
export type ToolDefinition = Readonly<Partial<Record<DefiningMember, string>>>;

/** A longer tool has no definition (P8). Known tools have some KiB. */
export const maxToolBytes = 256 * 1024;

/** Reads the definition of a tool in a list; undefined for a tool that is too long, or no object. */
export function readToolDefinition(tool: Buffer): ToolDefinition | undefined {
  const value = parseBounded(tool, maxToolBytes);
  if (!isObject(value)) return undefined;
  const members = definingMembers.filter((member) => value[member] !== undefined);
  return Object.fromEntries(members.map((member) => [member, hashOfValue(value[member])]));
}

/** The members in which two definitions differ. */
export const changedMembers = (a: ToolDefinition, b: ToolDefinition): DefiningMember[] =>
  definingMembers.filter((member) => a[member] !== b[member]);

/** The order of keys does not change a value, so it does not change its hash. */
const hashOfValue = (value: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(value, (_key, each) => (isObject(each) ? sorted(each) : each)))
    .digest('base64url');

const sorted = (value: Readonly<Record<string, unknown>>): object =>
  Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
