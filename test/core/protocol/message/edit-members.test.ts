import { describe, expect, it } from 'vitest';
import { replaceParts } from '../../../../src/core/protocol/json.ts';
import {
  findRemoval,
  findRemovals,
  putMembers,
  removeFromEach,
  withoutMember,
} from '../../../../src/core/protocol/message/edit-members.ts';
import { readBody } from '../../../../src/core/protocol/message/message.ts';
import { readMessage } from '../../../support/fake-backend.ts';

describe('putMembers', () => {
  const put = (text: string, level: 'params' | 'meta' = 'meta'): string =>
    putMembers(readMessage(text), level, [
      ['a', '1'],
      ['b', '"x"'],
    ]).toString();

  it.each([
    ['{"jsonrpc":"2.0","method":"m"}', '{"params":{"_meta":{"a":1,"b":"x"}},"jsonrpc":"2.0","method":"m"}'],
    [
      '{"jsonrpc":"2.0","method":"m","params":null}',
      '{"jsonrpc":"2.0","method":"m","params":{"_meta":{"a":1,"b":"x"}}}',
    ],
    [
      '{"jsonrpc":"2.0","method":"m","params":{ }}',
      '{"jsonrpc":"2.0","method":"m","params":{"_meta":{"a":1,"b":"x"} }}',
    ],
    [
      '{"jsonrpc":"2.0","params":{"n":12345678901234567890,"_meta":{"c":1e400}},"method":"m"}',
      '{"jsonrpc":"2.0","params":{"n":12345678901234567890,"_meta":{"a":1,"b":"x","c":1e400}},"method":"m"}',
    ],
    [
      '{"jsonrpc":"2.0","method":"m","params":{"_meta":{"b" : 2, "c":3,"\\u0061":4}}}',
      '{"jsonrpc":"2.0","method":"m","params":{"_meta":{"b" : "x", "c":3,"\\u0061":1}}}',
    ],
    [
      '{"jsonrpc":"2.0","method":"m","params":{"_meta":"none"}}',
      '{"jsonrpc":"2.0","method":"m","params":{"_meta":{"a":1,"b":"x"}}}',
    ],
  ])('[P1] puts members into the _meta of %s and changes nothing else', (text, expected) => {
    expect(put(text)).toBe(expected);
  });

  it('[P1] puts members into params', () => {
    expect(put('{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":{"b":1},"z":"ü"}}', 'params')).toBe(
      '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"b":"x","z":"ü"}}',
    );
  });
});

describe('members beside which a key stands twice', () => {
  const twice = '"params":{"a":1,"a":2}';

  it('[P1] are taken out all the same', () => {
    const text = `{"result":{${twice},"x":1,"y":[{${twice},"x":2},{"b":1,"b":2,"x":3},3]}}`;
    expect(withoutMember(Buffer.from(text), ['result', 'x']).toString()).toBe(text.replace('"x":1,', ''));
    expect(removeFromEach(Buffer.from(text), ['result', 'y'], (each) => findRemoval(each, ['x']))?.toString()).toBe(
      text.replace(',"x":2', ''),
    );
  });
});

describe('withoutMember', () => {
  it.each([
    ['{"a":1}', ['a'], '{}'],
    [' { "a" : 1 } ', ['a'], ' {} '],
    ['{"a":1 , "b":2}', ['a'], '{ "b":2}'],
    ['{"a":1 , "b":2, "c":3}', ['b'], '{"a":1, "c":3}'],
    ['{"a":"}, {","b":2}', ['b'], '{"a":"}, {"}'],
    ['{"a":{"x":[1],"y":"ü"},"b":2}', ['a', 'x'], '{"a":{"y":"ü"},"b":2}'],
    ['{"a":{"x":1}}', ['a', 'y'], '{"a":{"x":1}}'],
    ['{"a":1}', ['b', 'c'], '{"a":1}'],
    ['{"a":1}', ['b', 'a'], '{"a":1}'],
    ['{"a":[1]}', ['a', 'x'], '{"a":[1]}'],
    ['{"a":{"x":1,"x":2}}', ['a', 'x'], '{"a":{"x":1,"x":2}}'],
    ['[1]', ['0'], '[1]'],
  ])('[P1] of %s %j gone leaves %s', (text, path, expected) => {
    expect(withoutMember(Buffer.from(text), path).toString()).toBe(expected);
  });
});

describe('removeFromEach', () => {
  it.each(['{"x":1}', '{"y":{"x":1}}', '{"y":[]}', '{"y":[{"a":1}]}', '{"y":[],"y":[]}', '[{"x":1}]'])(
    '[P1] returns %s itself, which has no list with such a member',
    (text) => {
      const bytes = Buffer.from(text);
      expect(removeFromEach(bytes, ['y'], (each) => findRemoval(each, ['x']))).toBe(bytes);
    },
  );
});

describe('findRemovals', () => {
  const removedFrom = (text: string, keys: readonly string[]): readonly string[] => {
    const body = readBody(Buffer.from(text), 100);
    if (!body.ok) throw new Error('not a body');
    return body.messages.map((read) => {
      if (!read.ok) throw new Error('not a message');
      const { message } = read;
      const removals = findRemovals(message, 'params', keys).map((range) => ({ ...range, by: '' }));
      return replaceParts(message.text, removals).toString();
    });
  };
  const withParams = (params: string): string => `{"jsonrpc":"2.0","method":"m","params":${params}}`;

  it.each([
    ['{"a":1,"b":2,"c":3}', '{"c":3}'],
    ['{"c":3,"a":1,"d":4,"b":2}', '{"c":3,"d":4}'],
    ['{ "a" : 1 , "b" : 2 }', '{}'],
    ['{"c":3}', '{"c":3}'],
    ['{}', '{}'],
  ])('[P1] of the params %s leaves %s', (params, expected) => {
    expect(removedFrom(withParams(params), ['a', 'b'])).toEqual([withParams(expected)]);
  });

  it('[P1] works on each message of a batch', () => {
    const batch = `[ ${withParams('{"a":1,"c":3}')} , ${withParams('{"c":3,"b":2}')},{"jsonrpc":"2.0","method":"n"}]`;
    const left = withParams('{"c":3}');
    expect(removedFrom(batch, ['a', 'b'])).toEqual([left, left, '{"jsonrpc":"2.0","method":"n"}']);
  });
});
