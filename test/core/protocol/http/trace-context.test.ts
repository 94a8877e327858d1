import { describe, expect, test } from 'vitest';
import { putTraceContext, readTraceContext, traceHeaders } from '../../../../src/core/protocol/http/trace-context.ts';
import { readGatewayMessage } from '../../../../src/core/protocol/message/message.ts';

const keys = ['traceparent', 'tracestate', 'baggage'];
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01';
const before = '{"jsonrpc":"2.0","id":1.0,"method":"m"';
const requestWith = (params: string) => readGatewayMessage(Buffer.from(`${before}${params}}`));
const read = (params: string) => readTraceContext(requestWith(params), keys);
const put = (params: string, carrier: Record<string, string>): string =>
  putTraceContext(requestWith(params), carrier).text.toString().slice(before.length, -1);

describe('the context of a trace', () => {
  test('is in _meta, in text of no more than 8 KiB', () => {
    expect(read(`,"params":{"_meta":{"traceparent":"${traceparent}","baggage":"a=1","other":"x"}}`)).toEqual({
      traceparent,
      baggage: 'a=1',
    });
    for (const nothing of ['', ',"params":null', ',"params":{"_meta":1}', ',"params":{"_meta":{"traceparent":1}}'])
      expect(read(nothing)).toEqual({});
    expect(read(`,"params":{"_meta":{"baggage":"${'x'.repeat(8 * 1024)}"}}`)).toEqual({});
  });

  test('[P1] is put into a request of which nothing else changes', () => {
    const other = traceparent.replace('00f0', 'ffff');
    const carrier = { traceparent: other };
    const rest = '"n":12345678901234567890,"n2":1.0,"s":"\\u00e9"';
    expect(put(`,"params":{"_meta":{"traceparent":"${traceparent}","progressToken":1.0},${rest}}`, carrier)).toBe(
      `,"params":{"_meta":{"traceparent":"${other}","progressToken":1.0},${rest}}`,
    );
    expect(put(`,"params":{${rest}}`, carrier)).toBe(`,"params":{"_meta":{"traceparent":"${other}"},${rest}}`);
    expect(requestWith('').id).toBe(1);
    expect(putTraceContext(requestWith(''), carrier).text.toString()).toBe(
      `{"params":{"_meta":{"traceparent":"${other}"}},"jsonrpc":"2.0","id":1.0,"method":"m"}`,
    );
  });

  test('[P1] leaves baggage as its sender wrote it, and what is no object', () => {
    const carrier = { traceparent, baggage: 'a=1%3B' };
    expect(put(',"params":{"_meta":{"baggage":"a=1;"}}', carrier)).toBe(
      `,"params":{"_meta":{"traceparent":"${traceparent}","baggage":"a=1;"}}`,
    );
    expect(put(',"params":{"_meta":{}}', { baggage: 'a="1"' })).toBe(',"params":{"_meta":{"baggage":"a=\\"1\\""}}');
    for (const same of [',"params":null', ',"params":{"_meta":1}', ',"params":{"_meta":[]}'])
      expect(put(same, carrier)).toBe(same);
  });

  test('stands in headers only where it is no danger to them', () => {
    expect(traceHeaders({ traceparent, baggage: 'a=1\r\nx: y', tracestate: 'é', other: 'x'.repeat(9_000) })).toEqual({
      traceparent,
    });
  });
});
