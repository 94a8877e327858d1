import { expect, it } from 'vitest';
import {
  adviceOnFilters,
  ListedItems,
  namedItems,
  noFilters,
} from '../../../../src/app/commands/check/unused-filters.ts';
import type { FilterOptions } from '../../../../src/core/backend/filter-rules.ts';
import { createMessage } from '../../../../src/core/protocol/message/message.ts';

const listed = new ListedItems();
const say = (result: object) => listed.read(createMessage({ id: 1, result }));
say({ tools: [{ name: 'read_file', annotations: { readOnlyHint: true } }, { name: 'write_file' }] });
say({ tools: [{ name: 'list' }, null, { name: 1 }] });
say({ prompts: [{ name: 'ask' }] });

const textsOf = (filters: Partial<FilterOptions>) =>
  adviceOnFilters('files', { ...noFilters, ...filters }, listed).map(({ text }) => text);

it.each<[Partial<FilterOptions>, string[]]>([
  [{ allowTools: ['read_*', 'list', '@readOnlyHint'], denyPrompts: ['ask'], tools: { write_file: {} } }, []],
  [{ allowTools: ['nope'] }, ['allowTools: "nope" matches no tool. There are 3 tools.']],
  [{ denyTools: ['raed_file'] }, ['denyTools: "raed_file" matches no tool. Did you mean "read_file"?']],
  [{ allowPrompts: ['x*'] }, ['allowPrompts: "x*" matches no prompt. There is 1 prompt.']],
  [{ denyTools: ['@!openWorldHint'] }, ['denyTools: "@!openWorldHint" matches no tool. There are 3 tools.']],
  [{ tools: { nosuch: {} } }, ['tools: "nosuch" matches no tool. There are 3 tools.']],
])('the filter %j has the notes %j', (filters, notes) => {
  expect(textsOf(filters)).toEqual(notes);
});

it('of a view, names without the prefix of their server match nothing, and conditions are not tested', () => {
  const items = { tools: namedItems(['files__read', 'mail__send']), prompts: namedItems([]) };
  const filters = { ...noFilters, allowTools: ['@readOnlyHint', 'mail__*'], tools: { read: {} } };
  expect(adviceOnFilters('all', filters, items, false)).toEqual([
    { about: 'all', text: 'tools: "read" matches no tool. Did you mean "files__read"?' },
  ]);
});
