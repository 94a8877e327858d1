import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  listenResult,
  renumber,
  restoreId,
  restoreListenResponse,
  restoreSubscription,
  restoreToken,
  subscriptionOf,
} from '../../../../src/core/protocol/modern/renumber.ts';
import { fieldsInText, routingFields } from '../../../support/routing-fields.ts';
import { read } from './read.ts';

const key = 'io.modelcontextprotocol/subscriptionId';
const ids = ['1', '"1"', '0', '-7', '9007199254740991', '-9007199254740991', '""', '"\\u0031"', '1.0', '1e0', '"ü😀"'];

describe('the ids of many clients at one server', () => {
  it.each(ids)('[P1] [R6.08] [R2.09] the id %s goes out as a number and comes back as it was', (id) => {
    const sent = renumber(read(`{"jsonrpc":"2.0","id": ${id} ,"method":"m","x":1e400}`), 42);
    expect(sent.request.text.toString()).toBe('{"jsonrpc":"2.0","id": 42 ,"method":"m","x":1e400}');
    expect(sent.tokenText).toBeUndefined();
    expect(routingFields(sent.request)).toEqual(fieldsInText(sent.request));
    const response = read('{"id":42,"result":{"id":42,"big":12345678901234567890},"jsonrpc":"2.0"}');
    const restored = restoreId(response, sent);
    expect(restored.text.toString()).toBe(`{"id":${id},"result":{"id":42,"big":12345678901234567890},"jsonrpc":"2.0"}`);
    expect(routingFields(restored)).toEqual(fieldsInText(restored));
  });

  it.each(ids)('[P1] [R3.10] the progress token %s does too, wherever it stands', (token) => {
    const before = `{"params":{"_meta":{"progressToken":${token},"traceparent":"00-1"},"n":1},"id":"a","jsonrpc":"2.0","method":"m"}`;
    const after =
      '{"params":{"_meta":{"progressToken":42,"traceparent":"00-1"},"n":1},"id":42,"jsonrpc":"2.0","method":"m"}';
    const sent = renumber(read(before), 42);
    expect(sent.request.text.toString()).toBe(after);
    expect(routingFields(sent.request)).toEqual(fieldsInText(sent.request));
    const progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":42,"progress":42}}';
    const restored = restoreToken(read(progress), sent.clientToken, sent.tokenText as string);
    expect(restored.text.toString()).toBe(progress.replace('"progressToken":42', `"progressToken":${token}`));
    expect(routingFields(restored)).toEqual(fieldsInText(restored));
  });

  it('[P1] the id may stand before the token', () => {
    const text = (id: string, token: string): string =>
      `{"jsonrpc":"2.0","id":${id},"method":"m","params":{"_meta":{"progressToken":${token}}}}`;
    const sent = renumber(read(text('"a"', '"a long token"')), 42);
    expect(sent.request.text.toString()).toBe(text('42', '42'));
    expect(sent).toMatchObject({ idText: '"a"', tokenText: '"a long token"', clientToken: 'a long token' });
  });

  it('[P1] in a text with white space around it, too', () => {
    const sent = renumber(read('\n\t{"id":"a","jsonrpc":"2.0",\n"method":"m"}\n'), 42);
    expect(sent.request.text.toString()).toBe('{"id":42,"jsonrpc":"2.0",\n"method":"m"}');
    expect(sent.idText).toBe('"a"');
  });

  it.each(['null', '{}', '1.5', 'true', '[1]'])('the token %s is none: it stays, for the server to refuse', (token) => {
    const before = `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":${token}}}}`;
    const sent = renumber(read(before), 42);
    expect(sent.request.text.toString()).toBe(before.replace('"id":1', '"id":42'));
    expect(sent.tokenText).toBeUndefined();
  });

  it.each(ids)('[R9.03] [R5.02] the subscription id %s comes back with its type', (id) => {
    const notification = read(`{"jsonrpc":"2.0","method":"n","params":{"_meta":{"a":1,"${key}":42},"uri":"x"}}`);
    expect(subscriptionOf(notification)).toBe(42);
    expect(restoreSubscription(notification, id).text.toString()).toBe(
      `{"jsonrpc":"2.0","method":"n","params":{"_meta":{"a":1,"${key}":${id}},"uri":"x"}}`,
    );
    const end = read(`{"jsonrpc":"2.0","id":42,"result":{"resultType":"complete","_meta":{"${key}":42}}}`);
    const restored = restoreListenResponse(end, { clientId: JSON.parse(id), idText: id });
    expect(restored.text.toString()).toBe(listenResult(id).text.toString());
    expect(routingFields(restored)).toEqual(fieldsInText(listenResult(id)));
    expect(JSON.parse(listenResult(id).text.toString())).toMatchObject({ id: JSON.parse(id) });
  });

  it('a response to a listen without its subscription id, or with an error, gets its id', () => {
    for (const rest of ['"result":{}', '"error":{"code":-32603,"message":"x"}']) {
      const response = read(`{"jsonrpc":"2.0","id":42,${rest}}`);
      expect(restoreListenResponse(response, { clientId: 'a', idText: '"a"' }).text.toString()).toBe(
        `{"jsonrpc":"2.0","id":"a",${rest}}`,
      );
    }
  });

  it('what names no subscription belongs to none', () => {
    const naming = (id: string): string => `{"jsonrpc":"2.0","method":"n","params":{"_meta":{"${key}":${id}}}}`;
    expect(subscriptionOf(read('{"jsonrpc":"2.0","method":"n"}'))).toBeUndefined();
    for (const id of ['{}', 'true', 'null']) expect(subscriptionOf(read(naming(id)))).toBeUndefined();
    expect(subscriptionOf(read(naming('"a"')))).toBe('a');
  });

  it('[P1] there and back, any id and any other content stay as they are', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.maxSafeInteger()), fc.jsonValue(), (id, content) => {
        if (typeof id === 'string' && id.length > 256) return;
        const request = read({ jsonrpc: '2.0', id, method: 'm', params: { content } });
        const sent = renumber(request, 7);
        expect(JSON.parse(sent.request.text.toString())).toEqual({ ...JSON.parse(request.text.toString()), id: 7 });
        const there = read(sent.request.text.toString());
        expect(restoreId(there, sent).text.equals(request.text)).toBe(true);
      }),
    );
  });
});
