import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Message, readOne } from '../../../src/core/protocol/message/message.ts';
import { UiUris } from '../../../src/core/protocol/ui-uris.ts';

const pages = new UiUris('git');
const messageOf = (text: string) => readOne(Buffer.from(text)) as Message;
const resultOf = (result: string) => messageOf(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
const forClient = (result: string): string | undefined => {
  const text = pages.forClient(resultOf(result))?.text.toString();
  return text?.slice('{"jsonrpc":"2.0","id":1,"result":'.length, -1);
};

describe('the ui:// URIs of one of several servers', () => {
  it.each([
    ['a list', '{"resources":[{"uri":"ui://app/main"}]}', '{"resources":[{"uri":"ui://git/app/main"}]}'],
    ['a tool', '{"_meta":{"ui":{"resourceUri":"ui://a"}}}', '{"_meta":{"ui":{"resourceUri":"ui://git/a"}}}'],
    ['the old key', '{"_meta":{"ui/resourceUri":"ui://a"}}', '{"_meta":{"ui/resourceUri":"ui://git/a"}}'],
    ['a link', '{"type":"resource_link","uri" : "ui://a"}', '{"type":"resource_link","uri" : "ui://git/a"}'],
    ['escaped slashes', String.raw`{"uri":"ui:\/\/a"}`, String.raw`{"uri":"ui:\/\/git/a"}`],
    ['escaped letters', String.raw`{"uri":"\u0075\u0069\u003A\u002f\u002Fa"}`, undefined],
    ['text that only contains one', '{"text":"see ui://a"}', '{"text":"see ui://a"}'],
    ['text that quotes one', String.raw`{"text":"{\"uri\":\"ui://a\"}"}`, String.raw`{"text":"{\"uri\":\"ui://a\"}"}`],
    ['text that ends in a backslash', String.raw`["\\","ui://a"]`, String.raw`["\\","ui://git/a"]`],
    ['another scheme', '{"uri":"gui://a"}', '{"uri":"gui://a"}'],
    ['other letters', '{"text":"ü","uri":"ui://ü"}', '{"text":"ü","uri":"ui://git/ü"}'],
  ])('name it for clients: %s', (_, own, expected) => {
    const result = forClient(own);
    if (expected !== undefined) expect(result).toBe(expected);
    expect(JSON.stringify(JSON.parse(result ?? ''))).toBe(
      JSON.stringify(JSON.parse(own), (__, value) =>
        typeof value === 'string' ? value.replace(/^ui:\/\//, 'ui://git/') : value,
      ),
    );
  });

  it('are the own ones again at the server, and those of another server stay as they are', () => {
    const request = (uri: string) =>
      messageOf(`{"jsonrpc":"2.0","id":"ui://git/1","method":"resources/read","params":{"uri":"${uri}"}}`);
    const readBy = (uri: string) => JSON.parse(pages.forServer(request(uri))?.text.toString() ?? '');
    expect(readBy('ui://git/app/main')).toMatchObject({ id: 'ui://git/1', params: { uri: 'ui://app/main' } });
    expect(readBy(String.raw`ui:\/\/git\/app`)).toMatchObject({ params: { uri: 'ui://app' } });
    expect(readBy('ui://other/app').params.uri).toBe('ui://other/app');
    expect(readBy('ui://gitx/app').params.uri).toBe('ui://gitx/app');
  });

  it('come back as they were, in every value', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('ui://', 'ui://git/', 'a', '"', '\\', '/', 'ü')), (parts) => {
        const own = `{"jsonrpc":"2.0","method":"m","params":${JSON.stringify({ a: parts.join(''), b: parts })}}`;
        const client = pages.forClient(messageOf(own));
        const server = client && pages.forServer(client);
        expect(server?.text.toString()).toBe(own);
      }),
    );
  });

  it('[P8] are not changed in a message that has too many of them', () => {
    expect(forClient(JSON.stringify(Array.from({ length: 20_001 }, () => 'ui://a')))).toBeUndefined();
  });

  it.each(['a.b', 'a*b', 'a b', 'ü'])('may have a server of any name: %s', (name) => {
    const named = new UiUris(name);
    const client = named.forClient(resultOf('{"uri":"ui://a"}'));
    expect(named.isOwn(JSON.parse(client?.text.toString() ?? '').result.uri)).toBe(true);
    expect(client && named.forServer(client)?.text.toString()).toContain('"ui://a"');
  });
});
