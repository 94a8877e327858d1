import { expect, it } from 'vitest';
import { readCallName } from '../../../../src/core/protocol/message/call-name.ts';
import { readGatewayMessage } from '../../../../src/core/protocol/message/message.ts';

/** The name in a call whose name stands in the text like this. */
const nameIn = (json: string): string | undefined =>
  readCallName(
    readGatewayMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${json}}}`)),
  );

it('the name of a call is that of its own text, whichever name was read before', () => {
  const names: readonly (readonly [json: string, name: string | undefined])[] = [
    ['"echo"', 'echo'],
    ['"ech\\u006f"', 'echo'],
    ['"echa"', 'echa'],
    ['"a\\\\b"', 'a\\b'],
    ['"a\\\\\\\\b"', 'a\\\\b'],
    ['"é"', 'é'],
    ['"Ã©"', 'Ã©'],
    ['""', ''],
    ['7', undefined],
    ['null', undefined],
    ['{"a":"echo"}', undefined],
    [`"${'x'.repeat(128)}"`, 'x'.repeat(128)],
    [`"${'x'.repeat(129)}"`, 'x'.repeat(128)],
    [`"${'x'.repeat(770)}"`, undefined],
  ];
  for (const [before] of names)
    for (const [json, name] of names) {
      nameIn(before);
      expect([before, json, nameIn(json)]).toEqual([before, json, name]);
    }
});
