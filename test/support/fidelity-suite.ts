import { describe, expect, test } from 'vitest';
import type { Answer, Session } from './http-client.ts';

/** JSON texts that parsing and serialising would change, or that a careless splitter of lines or UTF-8 would break. */
const texts = [
  ['a big integer', '{"n":12345678901234567890}'],
  ['a number over the range', '{"n":1e400,"m":-1E+400}'],
  ['numbers in other notations', '{"n":[1.0,1E2,-0,0.1e-7,100000000000000000000000]}'],
  ['duplicate nested keys', '{"a":{"k":1,"k":2,"k":{"k":3,"k":4}}}'],
  ['U+2028 and U+2029', '{"s":"a\u2028b\u2029c"}'],
  ['escapes that need not be', '{"s":"\\u0041\\/\\u00e4\\u2028\\ud83c\\udf0d\\b","\\u006bey":1}'],
  ['a lone surrogate', '{"s":"\\ud800"}'],
  ['characters of two, three and four bytes', '{"s":"ä€🌍","ключ":1}'],
  ['the order of keys and white space', '{"z":1, "1":2 ,\t"a" : [ ] }'],
  ['keys of Object.prototype', '{"__proto__":{"x":1},"constructor":2,"toString":3}'],
  ['a deep nesting', `{"n":${'['.repeat(50)}${']'.repeat(50)}}`],
] as const;

/** The text of the last message. On a busy machine, an answer that is late comes as an event instead of JSON. */
const textOf = ({ json, text, events }: Answer): string =>
  json === undefined ? (events.findLast(({ data }) => data)?.data ?? '') : text;

/** Tests P1 for messages in both directions, in a session with our own fixture. */
export function testFidelity(sessionOf: () => Session): void {
  describe.each(texts)('%s', (_name, json) => {
    test('from the client to the server', async () => {
      const request = `{"params":{"arguments":{"x":${json}},"name":"echo_line"},"id":1,"jsonrpc":"2.0","method":"tools/call","extra":${json}}`;
      const response = JSON.parse(textOf(await (await sessionOf().send(request)).answer()));
      expect(response.result.content[0].text).toBe(request);
    });

    test('from the server to the client, as JSON', async () => {
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'raw_result', arguments: { json } } };
      const text = textOf(await (await sessionOf().send(body)).answer());
      expect(text.trimEnd()).toBe(`{"jsonrpc":"2.0","id":1,"result":${json}}`);
    });

    test('from the server to the client, as SSE', async () => {
      const notification = `{"x":${json},"method":"notifications/message","params":{"level":"info","data":${json}},"jsonrpc":"2.0"}`;
      const args = { text: `${notification}\n` };
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'raw_write', arguments: args } };
      const { events } = await (await sessionOf().send(body)).answer();
      expect(events.filter(({ data }) => data).map(({ data }) => data)).toEqual([
        notification,
        '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"written"}]}}',
      ]);
    });
  });

  test('[R6.01] raw CR and LF of a pretty-printed request become spaces, and nothing else changes', async () => {
    const request =
      '{\r\n  "jsonrpc": "2.0",\n  "id": 1,\r"method": "tools/call",\n  "params": { "name": "echo_line", "arguments": { "s": "\\r\\n" } }\n}\n';
    const json = JSON.parse(textOf(await (await sessionOf().send(request)).answer()));
    expect(json.result.content[0].text.trimEnd()).toBe(request.replace(/[\r\n]/g, ' ').trimEnd());
  });
}
