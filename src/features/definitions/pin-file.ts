import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { PreparedPins } from '../../app/features/calls.ts';
import type { NamedItem, PinnedTools } from '../../core/backend/filter-rules.ts';
import {
  changedMembers,
  definingMembers,
  readToolDefinition,
  type ToolDefinition,
} from '../../core/protocol/tool-definition.ts';
import { isObject } from '../../core/util/is-object.ts';
import { replaceFile } from '../../core/util/replace-file.ts';
import { errorCodeOf } from '../../core/util/text/error-code.ts';

/** The definitions of the pinned tools, by name. */
type Pins = ReadonlyMap<string, ToolDefinition>;

/** How long a file counts as unchanged. */
const lookEveryMs = 1_000;

/** The hidden tools that are remembered, for the refusal of their calls (P8). */
const maxHidden = 1_000;

/**
 * The tools of a pin file: those whose definition is still the pinned one may be seen and called. A changed file counts
 * within a second. If it cannot be read any more, the last pins stay.
 * @param command what writes the file, for the error
 * @throws an error for the operator if the file cannot be read
 */
export function openPins(path: string, command: string): PinnedTools {
  let state = stateOf(path);
  let pins = readPins(path, command);
  let lookedAt = performance.now();
  const hidden = new Set<string>();
  const current = (): Pins => {
    if (performance.now() - lookedAt < lookEveryMs) return pins;
    lookedAt = performance.now();
    const now = stateOf(path);
    if (now === state || now === undefined) return pins;
    try {
      pins = readPins(path, command);
      state = now;
    } catch {
      // The file is being written. The next look reads it.
    }
    return pins;
  };
  return {
    allows(item) {
      const pinned = current().get(item.name);
      const isAllowed = pinned !== undefined && hasDefinition(item, pinned);
      if (isAllowed) hidden.delete(item.name);
      else if (hidden.size < maxHidden) hidden.add(item.name);
      return isAllowed;
    },
    hides: (name) => hidden.has(name),
  };
}

function hasDefinition({ text }: NamedItem, pinned: ToolDefinition): boolean {
  const definition = readToolDefinition(text);
  return definition !== undefined && changedMembers(pinned, definition).length === 0;
}

const stateOf = (path: string): string | undefined => {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && `${found.ino} ${found.size} ${found.mtimeMs}`;
};

function readPins(path: string, command: string): Pins {
  const named = `The pin file ${resolve(path)}`;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    const isMissing = errorCodeOf(cause) === 'ENOENT';
    const why = isMissing ? 'does not exist' : `cannot be read: ${(cause as Error).message}`;
    throw new Error(`${named} ${why}. Write it with: ${command}`, { cause });
  }
  const tools = toolsIn(text);
  if (tools === undefined) throw new Error(`${named} is not valid. Write it again with: ${command}`);
  return tools;
}

function toolsIn(text: string): Pins | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const tools = isObject(value) ? value['tools'] : undefined;
  if (!isObject(tools) || !Object.values(tools).every(isDefinition)) return undefined;
  return new Map(Object.entries(tools) as [string, ToolDefinition][]);
}

const isDefinition = (value: unknown): value is ToolDefinition =>
  isObject(value) &&
  Object.entries(value).every(
    ([member, hash]) => (definingMembers as readonly string[]).includes(member) && typeof hash === 'string',
  );

/**
 * Finds what the pin file of these tools changes, and returns it with what writes the file as a whole.
 * @throws if the file before cannot be read
 */
export function preparePins(path: string, server: string, tools: Iterable<NamedItem>): PreparedPins {
  const before: Pins = (stateOf(path) !== undefined && toolsIn(readFileSync(path, 'utf8'))) || new Map();
  const after = new Map<string, ToolDefinition>();
  const tooLong: string[] = [];
  for (const item of tools) {
    const definition = readToolDefinition(item.text);
    if (definition === undefined) tooLong.push(item.name);
    else after.set(item.name, definition);
  }
  const entries = [...after].sort(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify({ server, tools: Object.fromEntries(entries) }, undefined, 2);
  const changed = [...after].map(([tool, definition]) => ({
    tool,
    members: changedMembers(before.get(tool) ?? definition, definition),
  }));
  return {
    pinned: after.size,
    tooLong,
    added: [...after.keys()].filter((tool) => !before.has(tool)),
    removed: [...before.keys()].filter((tool) => !after.has(tool)),
    changed: changed.filter(({ members }) => members.length > 0),
    write: () => replaceFile(path, `${text}\n`),
  };
}
