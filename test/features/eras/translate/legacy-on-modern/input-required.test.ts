import { describe, expect, it } from 'vitest';
import {
  readInputRequired,
  resultTypeOf,
  toLegacyRequest,
  toRetryRequest,
} from '../../../../../src/features/eras/translate/legacy-on-modern/input-required.ts';
import { readMessage } from '../../../../support/fake-backend.ts';

const response = (resultText: string) => readMessage(`{"jsonrpc":"2.0","id":1,"result":${resultText}}`);
const roots = '{"method":"roots/list"}';

describe('the type of a result', () => {
  it.each([
    ['{}', 'complete'],
    ['{"resultType":"complete"}', 'complete'],
    ['{"result\\u0054ype":"input\\u005frequired"}', 'input_required'],
    ['{"resultType":"task"}', 'task'],
    ['{"resultType":7}', undefined],
  ])('of %s is %s', (text, type) => {
    expect(resultTypeOf(response(text))).toBe(type);
  });

  it('of an error is none', () => {
    expect(resultTypeOf(readMessage({ jsonrpc: '2.0', id: 1, error: { code: 1, message: 'x' } }))).toBeUndefined();
  });
});

describe('[R4.12] what a server asks for', () => {
  it('is read with its texts as they were written', () => {
    const round = readInputRequired(
      response(
        '{"inputRequests":{"__proto__":{"method":"elicitation/create","params":{"n":1.0}},"b":{"method":"roots/list"}},' +
          '"requestState":"a\\u0062\\/"}',
      ),
    );
    expect(round?.questions.map(({ key, method, params }) => [key, method, params?.toString()])).toEqual([
      ['__proto__', 'elicitation/create', '{"n":1.0}'],
      ['b', 'roots/list', undefined],
    ]);
    expect(round?.stateText?.toString()).toBe('"a\\u0062\\/"');
  });

  it('can be a state alone, or questions without one', () => {
    expect(readInputRequired(response('{"requestState":"x"}'))?.questions).toEqual([]);
    expect(readInputRequired(response(`{"inputRequests":{"a":${roots}}}`))?.stateText).toBeUndefined();
  });

  it.each([
    ['nothing', '{}'],
    ['no question and no state', '{"inputRequests":{}}'],
    ['questions that are no object', '{"inputRequests":[]}'],
    ['what a client cannot be asked', '{"inputRequests":{"a":{"method":"ping"}}}'],
    ['a question without a method', '{"inputRequests":{"a":{}}}'],
    ['a question that is no object', '{"inputRequests":{"a":null}}'],
    ['a method that is no text', '{"inputRequests":{"a":{"method":{}}}}'],
    ['a state that is no text', '{"requestState":{}}'],
    ['one question twice', `{"inputRequests":{"a":${roots},"a":${roots}}}`],
  ])('is not %s', (_, text) => {
    expect(readInputRequired(response(text))).toBeUndefined();
  });

  it('[P8] has a limit', () => {
    const asked = (count: number) =>
      response(`{"inputRequests":{${Array.from({ length: count }, (__, index) => `"${index}":${roots}`).join()}}}`);
    expect(readInputRequired(asked(100))?.questions).toHaveLength(100);
    expect(readInputRequired(asked(101))).toBeUndefined();
  });
});

describe('a question as a request', () => {
  const ask = (method: string, params?: string) =>
    toLegacyRequest(
      { key: 'k', method, params: params === undefined ? undefined : Buffer.from(params) },
      'q-1',
    ).text.toString();

  it.each([
    ['roots/list', undefined, '{"jsonrpc":"2.0","id":"q-1","method":"roots/list"}'],
    [
      'sampling/createMessage',
      '{"maxTokens":1.0}',
      '{"jsonrpc":"2.0","id":"q-1","method":"sampling/createMessage","params":{"maxTokens":1.0}}',
    ],
    [
      'elicitation/create',
      '{"mode":"form","message":"?"}',
      '{"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{"mode":"form","message":"?"}}',
    ],
    [
      'elicitation/create',
      '{"mode":"url","url":"https://x"}',
      '{"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{"elicitationId":"input-q-1","mode":"url","url":"https://x"}}',
    ],
  ])('[P1] %s %s', (method, params, expected) => {
    expect(ask(method, params)).toBe(expected);
  });
});

describe('the retry', () => {
  const request = readMessage(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0}}}',
  );

  it('[P1] [R4.07] has the answers under their keys and the state byte for byte', () => {
    const answers = new Map([
      ['a"', '{"roots":[]}'],
      ['__proto__', '{"action":"accept"}'],
    ]);
    expect(toRetryRequest(request, answers, Buffer.from('"s\\u0041"')).text.toString()).toBe(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"inputResponses":{"a\\"":{"roots":[]},"__proto__":{"action":"accept"}},' +
        '"requestState":"s\\u0041","name":"x","arguments":{"n":1.0}}}',
    );
  });

  it('[R4.08] has no state if the server sent none', () => {
    expect(JSON.parse(toRetryRequest(request, new Map([['a', '{}']]), undefined).text.toString()).params).toEqual({
      name: 'x',
      arguments: { n: 1 },
      inputResponses: { a: {} },
    });
  });
});
