import { beforeEach, describe, expect, test } from 'vitest';
import { FilterRules } from '../../../src/core/backend/filter-rules.ts';
import { readGatewayMessage } from '../../../src/core/protocol/message/message.ts';
import { beginTurn } from '../../../src/core/util/timing/work-meter.ts';
import { editCall, type FilteredList, filterList } from '../../../src/features/filters/edit-tools.ts';

/** What tests before these have read in the same turn does not count: a list is filtered at once. */
beforeEach(beginTurn);

const names = ['a', 'b', 'c', 'd'];
const listOf = (items: readonly string[]) =>
  Buffer.from(`{"result":{"tools":[ ${items.map((name) => `{ "name": "${name}" }`).join(' , ')} ]},"id":1}`);

describe('a filtered list', () => {
  test.each(Array.from({ length: 16 }, (_, bits) => names.filter((_name, at) => bits & (1 << at))))(
    'is valid, and keeps the text of the items that stay: without %s %s %s %s',
    (...hidden) => {
      const filtered = filterList(listOf(names), 'tools', new FilterRules([], hidden.filter(Boolean)));
      const { text, visible } = filtered as FilteredList;
      const kept = names.filter((name) => !hidden.includes(name));
      expect(JSON.parse(text.toString())).toEqual({ result: { tools: kept.map((name) => ({ name })) }, id: 1 });
      expect(visible.map(({ name }) => name)).toEqual(kept);
      for (const name of kept) expect(text.toString()).toContain(`{ "name": "${name}" }`);
    },
  );

  test('has changed tools beside removed ones', () => {
    const rules = new FilterRules([], ['a', 'd'], { b: { description: 'new' } });
    const filtered = filterList(listOf(names), 'tools', rules) as FilteredList;
    const tools = [{ description: 'new', name: 'b' }, { name: 'c' }];
    expect(JSON.parse(filtered.text.toString()).result.tools).toEqual(tools);
  });
});

/** Arguments with long names, which cannot be fixed ones. */
const long = (character: string): string => character.repeat(200);
const numbered = (from: number, length = 20): string =>
  Array.from({ length }, (_, n) => `"${long('é')}${from + n}" : [${n}, {"x":0}]`).join(' , ');
const many = numbered(0);
const more = numbered(100);

describe('a call with fixed arguments', () => {
  const change = { name: 'shown', arguments: { x: 1, y: 'é' } };
  const edited = (params: string) => {
    const call = readGatewayMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`));
    const message = editCall(call, 'own', change);
    return message === 'bad_arguments' ? message : JSON.parse(message.text.toString()).params;
  };
  const own = { name: 'own', arguments: { x: 1, y: 'é' } };

  test.each([
    ['without arguments', '{"name":"shown"}', own],
    ['with none', '{"name":"shown","arguments":{ }}', own],
    ['with all of them, in any case', '{"arguments":{"X":2,"y":3},"name":"shown"}', own],
    [
      'with others before, between and behind',
      '{"name":"shown","arguments":{ "a" : 1, "x":2 , "b":{"x":3}, "Y":0,"y" : 4, "c":[5]}}',
      { name: 'own', arguments: { x: 1, y: 'é', a: 1, b: { x: 3 }, c: [5] } },
    ],
    ['with no object', '{"name":"shown","arguments":[]}', 'bad_arguments'],
    ['with a key twice', '{"name":"shown","arguments":{"a":1,"a":2}}', 'bad_arguments'],
    ['with a key twice among many', `{"name":"shown","arguments":{"a":1,${many},"a":2}}`, 'bad_arguments'],
    [
      'with a key twice among many, once with an escape',
      `{"name":"shown","arguments":{"é":1,${many},"\\u00e9":2}}`,
      'bad_arguments',
    ],
    ['with more members than are read', `{"name":"shown","arguments":{${numbered(0, 8_193)}}}`, 'bad_arguments'],
    [
      'with all of them before, among and behind many others',
      `{"name":"shown","arguments":{ "X" : 2 , "y":3,${many}, "\\u0059":4 , ${more} , "\\u0078": {} }}`,
      { name: 'own', arguments: { x: 1, y: 'é', ...JSON.parse(`{${many},${more}}`) } },
    ],
  ])('%s', (_, params, expected) => {
    expect(edited(params)).toEqual(expected);
  });

  test('[P1] keeps the text of the other arguments', () => {
    const params = '{"name":"shown","arguments":{"a":  1.50,"x":2,"b":"\\u0041"}}';
    const call = readGatewayMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`));
    const message = editCall(call, 'own', { arguments: { x: 1 } });
    expect(message === 'bad_arguments' ? message : message.text.toString()).toContain(
      '{"x":1,"a":  1.50,"b":"\\u0041"}',
    );
  });
});
