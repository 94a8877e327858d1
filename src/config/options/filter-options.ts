import * as z from 'zod/mini';
import { isPattern, type ToolChange } from '../../core/backend/filter-rules.ts';
import { fileOption, list, map, members } from './option-kinds.ts';

const toolPattern = z.string({ error: 'must be a list of strings' }).check(
  z.refine(isPattern, {
    error:
      'must be a name, in which * stands for any characters, or one of @readOnlyHint, @destructiveHint, @idempotentHint and @openWorldHint, or their opposites, such as @!destructiveHint',
  }),
);

const promptPattern = z.string({ error: 'must be a list of strings' }).check(
  z.refine((pattern) => pattern !== '' && !pattern.startsWith('@'), {
    error: 'must be a name, in which * stands for any characters',
  }),
);

const text = z.string({ error: 'must be a string' });
/** The form that the specification recommends for the names of tools (2025-11-25, server/tools, "Tool Names"). */
const toolName = text.check(z.regex(/^[A-Za-z0-9_.-]{1,128}$/, { error: 'must be 1 to 128 letters, digits or _ . -' }));

const toolChange = members(
  {
    name: z.optional(toolName),
    title: z.optional(text),
    description: z.optional(text),
    arguments: z.optional(z.record(z.string(), z.json(), { error: 'must be an object' })),
  },
  'must be an object with only name, title, description and arguments',
);

const toolChanges = z
  .record(z.string(), toolChange, { error: 'must be an object with the names of tools as keys' })
  .check(
    z.refine(
      (tools) => {
        const names = Object.values(tools).flatMap(({ name }) => name ?? []);
        return new Set(names).size === names.length;
      },
      { error: 'gives the same name to two tools' },
    ),
  ) as z.ZodMiniType<Readonly<Record<string, ToolChange>>>;

/** Options that choose and change what clients see of a server; a part of `serverOptions`, and of each view. */
export const filterOptions = {
  allowTools: list(
    toolPattern,
    'Tool that clients may see and call; repeatable. A name with * for any characters, or a condition on annotations such as @readOnlyHint. All by default.',
  ),
  denyTools: list(
    toolPattern,
    'Tool that clients neither see nor can call, even if --defaults.allowTools names it; repeatable. A name with *, or a condition such as @destructiveHint.',
  ),
  allowPrompts: list(
    promptPattern,
    'Prompt that clients may see and use: a name with * for any characters; repeatable. All by default.',
  ),
  denyPrompts: list(promptPattern, 'Prompt that clients neither see nor can use: a name with *; repeatable.'),
  tools: map(
    'json',
    toolChanges,
    "Changes to tools, as a JSON object. The key is the tool's name, and the value may contain name, title, description, and arguments with fixed values that clients neither see nor set.",
    { secrets: 'arguments' },
  ),
  pin: fileOption(
    'Pin file, which mcp-gangway pin writes. Clients see and call only tools whose definition is the pinned one. In a file, a relative path begins at the folder of that file.',
  ),
};
