import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText, bytesOfInterest, keys, mutate, mutation } from '../../../test/support/json-texts.ts';
import { assertScan, parses } from '../../../test/support/plain-json.ts';
import type { Members } from '../src/object-members.ts';
import { defaultLimits, type ScanOutcome, scanJson } from '../src/scan.ts';

const deep = 1_000;

/** A copy that lies at an offset of its ArrayBuffer, between quotes that a reader must not see. */
function atOffset(bytes: Uint8Array, offset: number): Buffer {
  const memory = new ArrayBuffer(bytes.length + 16);
  new Uint8Array(memory).fill(0x22);
  const copy = Buffer.from(memory, offset, bytes.length);
  copy.set(bytes);
  return copy;
}

const expectSame = (bytes: Buffer, maxDepth = deep): void => assertScan(bytes, maxDepth);
const scan = (text: string, maxDepth = deep): ScanOutcome => scanJson(Buffer.from(text), maxDepth);
const faultOf = (outcome: ScanOutcome): string | undefined => (outcome.ok ? undefined : outcome.fault);

describe('scanJson accepts exactly what JSON.parse accepts', () => {
  it('any JSON text, with the members of its routing levels in the right ranges', () => {
    fc.assert(
      fc.property(anyText, (text) => expectSame(Buffer.from(text))),
      { numRuns: 700 },
    );
  });

  it('[B01] any text with some of its bytes changed, invalid UTF-8 among them', () => {
    fc.assert(
      fc.property(anyText, fc.array(mutation, { minLength: 1, maxLength: 3 }), (text, mutations) =>
        expectSame(mutate(text, mutations)),
      ),
      { numRuns: 1_200 },
    );
  });

  it('any bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...bytesOfInterest), { maxLength: 12 }), (bytes) =>
        expectSame(Buffer.from(bytes)),
      ),
      { numRuns: 1_500 },
    );
  });

  it('[B01] all truncations of a text that holds every token', () => {
    const text =
      '{"jsonrpc":"2.0","id":-1.5e+3,"method":"tools/call é€🌍","params":{"_meta":{"progressToken":"t\\u0041\\n"},"a":[true,false,null,{},[]]}}';
    const bytes = Buffer.from(text);
    expectSame(bytes);
    for (let end = 0; end < bytes.length; end++)
      expect(scanJson(bytes.subarray(0, end), deep).ok, `${end}`).toBe(false);
  });

  it('the same at every alignment of the memory that it lies in', () => {
    fc.assert(
      fc.property(anyText, fc.array(mutation, { maxLength: 1 }), fc.nat({ max: 7 }), (text, mutations, offset) => {
        const bytes = mutate(text, mutations);
        expect(scanJson(atOffset(bytes, offset), deep)).toEqual(scanJson(Buffer.from(bytes), deep));
        expectSame(atOffset(bytes, offset));
      }),
      { numRuns: 500 },
    );
  });

  it('reads nothing beyond the end of its buffer', () => {
    for (const text of [
      '"',
      '"a',
      '1',
      '-',
      'tru',
      '{"a":1',
      '[1',
      `"${'x'.repeat(40)}`,
      `"${'x'.repeat(41)}`,
      '"\\',
      '"\\u00',
    ]) {
      const bytes = Buffer.from(text);
      for (let offset = 0; offset < 8; offset++) {
        expect(scanJson(atOffset(bytes, offset), deep).ok, text).toBe(parses(text));
      }
    }
  });
});

describe('scanJson and single values', () => {
  it.each([
    ...['0', '-0', '1', '-1', '10', '1.5', '1e5', '1E5', '1e+5', '1e-5', '1.5e10', '1e400', '-1e400'],
    ...['123456789012345678901234567890', '0.0', '0e0', '-0.0e-0', 'true', 'false', 'null', '""', '[]', '{}'],
    ...[' 1 ', '\t\r\n1\n', '"\\u0000"', '"\\ud800"', '"\u2028\u2029"', '"\x7f"', '"\ufeff"', '{"":0}', '[[],[{}]]'],
  ])('takes %j', (text) => {
    expect(scan(text).ok).toBe(true);
    expectSame(Buffer.from(text));
  });

  it.each([
    ...[
      '',
      ' ',
      '01',
      '-01',
      '1.',
      '.5',
      '+1',
      '-',
      '--1',
      '1e',
      '1e+',
      '1.e1',
      '1.5.5',
      '0x1',
      '1_0',
      'Infinity',
      'NaN',
    ],
    ...[
      '- 1',
      '1 2',
      'tru',
      'True',
      'nul',
      'nulll',
      'undefined',
      "'a'",
      '"',
      '"\\"',
      '"\\x41"',
      '"\\u12"',
      '"\\u12g4"',
    ],
    ...['"\\u{41}"', '"\n"', '"\t"', '"\x00"', '"\x1f"', '[', ']', '[1', '[1,', '[1,]', '[,1]', '[,]', '[1 2]', '[1]]'],
    ...[
      '{',
      '}',
      '{"a"',
      '{"a":',
      '{"a":1',
      '{"a":1,',
      '{"a":1,}',
      '{,}',
      '{a:1}',
      '{"a" 1}',
      '{"a"::1}',
      '{"a":1 "b":2}',
    ],
    ...['{1:1}', '{"a":1]', '[1}', '{null:1}', '{[]:1}', '//\n1', '/**/1', '1//', '\u00a01', '\u20281', '\v1', '\f1'],
    ...['\ufeff1', '\ufeff{}', '{}\ufeff', '1\x00', '\x001', '[1,\n,2]', '[[[]]', '{"a":{"b":1}', '{"a":[}]'],
  ])('[B01] refuses %j', (text) => {
    expect(parses(text)).toBe(false);
    expect(faultOf(scan(text))).toBe('not_json');
    expect(faultOf(scan(`{"params":${text}}`))).toBe(
      text.trim() !== '' && parses(`{"params":${text}}`) ? undefined : 'not_json',
    );
  });

  it.each([
    ['a lone continuation byte', '80'],
    ['a byte that never is UTF-8', 'ff'],
    ['an overlong quote', 'c0a2'],
    ['an overlong slash of three bytes', 'e080af'],
    ['a surrogate', 'eda080'],
    ['a truncated character', 'e282'],
    ['a code point above U+10FFFF', 'f4908080'],
    ['a truncated character before the quote', 'f09f8c'],
  ])('[B01] refuses invalid UTF-8: %s', (_, hex) => {
    const bad = Buffer.from(hex, 'hex');
    for (const [before, after] of [
      ['"', '"'],
      ['{"', '":1}'],
      [`{"a":"${'x'.repeat(30)}`, '"}'],
    ] as const) {
      expect(faultOf(scanJson(Buffer.concat([Buffer.from(before), bad, Buffer.from(after)]), deep))).toBe('not_json');
    }
  });

  it('takes UTF-16 and UTF-32 for what they are: not JSON in UTF-8', () => {
    expect(faultOf(scanJson(Buffer.from('{"a":1}', 'utf16le'), deep))).toBe('not_json');
    expect(faultOf(scanJson(Buffer.from('\ufeff{"a":1}', 'utf16le'), deep))).toBe('not_json');
  });
});

describe('scanJson and long strings', () => {
  it('finds a quote, backslash or control character at each place, at each alignment', () => {
    const length = 70;
    for (const special of ['"', '\\', '\\"', '\\u0041', '\n', '\x00', '\x1f', ' ', '\x7f', '!', '#', '[', ']', 'é']) {
      for (let place = 0; place <= length; place++) {
        const text = `{"s":"${'x'.repeat(place)}${special}${'y'.repeat(length - place)}","id":1}`;
        const bytes = Buffer.from(text);
        const ok = parses(text);
        for (const offset of [0, 1, 2, 3, 7]) expect(scanJson(atOffset(bytes, offset), deep).ok, text).toBe(ok);
      }
    }
  });

  it('takes strings of every length around the boundaries, as keys too', () => {
    for (let length = 0; length <= 64; length++) {
      for (let offset = 0; offset < 8; offset++) {
        const word = 'k'.repeat(length);
        const bytes = atOffset(Buffer.from(`{"${word}":"${word}"}`), offset);
        const outcome = scanJson(bytes, deep);
        expect(outcome.ok && outcome.values[0]?.message).toEqual({
          keys: [word],
          starts: [length + 4],
          ends: [2 * length + 6],
        });
        expect(scanJson(bytes.subarray(0, -2), deep).ok).toBe(false);
      }
    }
  });
});

describe('scanJson and routing members', () => {
  it('resolves escapes in keys, so that "\\u0069d" is id', () => {
    const text = '{"\\u0069d":7,"\\u0070arams":{"\\u005fmeta":{"progress\\u0054oken":"t"}}}';
    const outcome = scan(text);
    if (!outcome.ok) throw new Error(outcome.fault);
    const [{ message, params, meta }] = outcome.values as [(typeof outcome.values)[0]];
    const slice = (members: Members | undefined, key: string) => {
      const index = members?.keys.indexOf(key) ?? -1;
      return index < 0 ? undefined : text.slice(members?.starts[index], members?.ends[index]);
    };
    expect(slice(message, 'id')).toBe('7');
    expect(slice(params, '_meta')).toBe('{"progress\\u0054oken":"t"}');
    expect(slice(meta, 'progressToken')).toBe('"t"');
    expect(slice(meta, 'id')).toBeUndefined();
    expect(slice(undefined, 'id')).toBeUndefined();
  });

  it('reads the keys that are there, whatever stood in their place in the text before', () => {
    const texts = [
      '{"id":1}',
      '{"i":1}',
      '{"id2":1}',
      '{"\\u0069d":1}',
      '{"i\\"":1}',
      '{"id\\"":1}',
      '{"ïd":1}',
      '{"":1}',
    ];
    for (const before of texts) {
      for (const text of texts) {
        scan(before);
        const outcome = scan(text);
        const keys = outcome.ok ? outcome.values[0]?.message?.keys : outcome.fault;
        expect(keys, `${text} after ${before}`).toEqual(Object.keys(JSON.parse(text)));
      }
      expect(faultOf(scan('{"id":1,"id":1}')), before).toBe('duplicate_key');
    }
  });

  it.each([
    ['in the message', '{"id":1,"id":1}'],
    ['in the message, one of them escaped', '{"id":1,"\\u0069d":2}'],
    ['in the message, the params', '{"params":{},"params":{}}'],
    ['in the message, an unknown key', '{"x":1,"y":2,"x":3}'],
    ['in the message, the empty key', '{"":1,"":2}'],
    ['in the message, __proto__', '{"__proto__":1,"__proto__":2}'],
    ['in params', '{"params":{"name":1,"name":1}}'],
    ['in params, the _meta', '{"params":{"_meta":{},"_meta":1}}'],
    ['in params._meta', '{"params":{"_meta":{"progressToken":1,"progressToken":2}}}'],
    ['in params._meta, one escaped', '{"params":{"_meta":{"progressToken":1,"progress\\u0054oken":2}}}'],
    ['in the second of a batch', '[{"id":1},{"id":2,"id":3}]'],
    ['after more keys than are compared in pairs', `{${keys(40)},"k3":0}`],
    ['as the last of many', `{"params":{${keys(5_000)},"k4999":0}}`],
    ['as a lone surrogate', '{"\\ud800":1,"\\uD800":2}'],
  ])('[B04] [A08] refuses a key that stands twice %s', (_, text) => {
    expect(faultOf(scan(text))).toBe('duplicate_key');
  });

  it.each([
    ['in arguments', '{"params":{"arguments":{"a":1,"a":2}}}'],
    ['below _meta', '{"params":{"_meta":{"x":{"a":1,"a":2}}}}'],
    ['in _meta of the message itself', '{"_meta":{"a":1,"a":2}}'],
    ['in _meta deeper down', '{"params":{"params":{"_meta":{"a":1,"a":2}}}}'],
    ['in a result', '{"result":{"a":1,"a":2},"id":1}'],
    ['in a list', '{"params":[{"a":1,"a":2}]}'],
    ['in a batch within a batch', '[[{"id":1,"id":2}]]'],
    ['in different objects', '[{"id":1},{"id":1}]'],
    ['in another case', '{"id":1,"ID":2,"Id":3,"\u0131d":4}'],
    ['in another normal form', '{"\u00e9":1,"e\u0301":2}'],
  ])('[A08] lets pass a key that stands twice %s', (_, text) => {
    expect(scan(text).ok).toBe(true);
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype', 'length'])(
    '[S18] takes %s for an ordinary key, once',
    (key) => {
      const text = `{"${key}":{"x":1},"params":{"${key}":2,"_meta":{"${key}":[3]}}}`;
      expectSame(Buffer.from(text));
      const outcome = scan(text);
      expect(outcome.ok && outcome.values[0]?.message?.keys).toEqual([key, 'params']);
      expect(faultOf(scan(`{"${key}":1,"${key}":2}`))).toBe('duplicate_key');
      expect(Object.hasOwn(Object.prototype, 'x')).toBe(false);
    },
  );

  it('takes apart batches, and leaves what is in them to its reader', () => {
    const text = ' [ {"id":1} , 2 , [] , {"params":{"_meta":{}}} ] ';
    const outcome = scan(text);
    if (!outcome.ok) throw new Error(outcome.fault);
    expect(outcome.batch).toBe(true);
    expect(outcome.values.map(({ start, end }) => text.slice(start, end))).toEqual([
      '{"id":1}',
      '2',
      '[]',
      '{"params":{"_meta":{}}}',
    ]);
    // What one message has does not stick to the next.
    expect(
      outcome.values.map(({ message, params, meta }) => [message, params, meta].map((found) => found !== undefined)),
    ).toEqual([
      [true, false, false],
      [false, false, false],
      [false, false, false],
      [true, true, true],
    ]);
    expect(scan('[]')).toEqual({ ok: true, batch: true, values: [] });
    expect(scan('[{"params":{"_meta":{"a":1}}},{"params":{}},{}]')).toMatchObject({
      values: [{ meta: { keys: ['a'] } }, { params: { keys: [] }, meta: undefined }, { params: undefined }],
    });
  });
});

const judged = { maxBatch: 100, maxMembers: 4_096, foldsKeys: true };

describe('keys of a text that is judged', () => {
  it.each([
    ['as a known one of the message', '{"id":1,"method":"a","Method":"b"}'],
    ['as a known one that is not there', '{"id":1,"PARAMS":{}}'],
    ['as a known one of params', '{"params":{"name":"a","Name":"b"}}'],
    ['as a known one of _meta', '{"params":{"_meta":{"progresstoken":1}}}'],
    ['as another one', '{"params":{"Vendor":1,"vendor":2}}'],
    ['as another one of _meta', '{"params":{"_meta":{"a/b":1,"a/B":2}}}'],
    ['with a long s', '{"param\u017f":{}}'],
    ['with a Kelvin sign', '{"params":{"tas\u212a":{}}}'],
    ['in an escape', '{"params":{"n\u0041me":"b"}}'],
    ['as the last of many', `{"params":{${keys(3_000)},"K7":0}}`],
    ['in a batch', '[{"id":1},{"id":2,"Id":3}]'],
  ])('[S-03] differ in more than case: %s', (_, text) => {
    expect(scan(text).ok).toBe(true);
    for (let round = 0; round < 2; round += 1)
      expect(faultOf(scanJson(Buffer.from(text), 100, judged))).toBe('duplicate_key');
  });

  it('[G-09] [P8] [S-06] have at most 16,384 characters together, where they are not ASCII', () => {
    const long = (count: number) =>
      Array.from({ length: count }, (_, n) => `"${'\u00e9'.repeat(1_020)}${n + 1_000}":1`);
    const textOf = (members: readonly string[]) => Buffer.from(`{"params":{${keys(3_000)},${members.join()}}}`);
    expect(scanJson(textOf(long(15)), 100, judged).ok).toBe(true);
    expect(faultOf(scanJson(textOf(long(16)), 100, judged))).toBe('key_too_long');
    expect(scan(textOf(long(16)).toString()).ok).toBe(true);
    const short = (count: number) => Array.from({ length: count }, (_, n) => `"\u00e9${n}":1`);
    expect(faultOf(scanJson(textOf(short(1_000)), 100, judged))).toBe('key_too_long');
  });

  it.each([
    ['deeper than routing looks', '{"params":{"arguments":{"a":1,"A":2,"Name":3}}}'],
    ['of another level', '{"params":{"Result":1,"_meta":{"Name":1,"Method":2}}}'],
    ['of a vendor', '{"params":{"Vendor":1,"_meta":{"X-Trace":1}}}'],
    ['with a dotless i, which has no other case', '{"\u0131d":1}'],
    ['of different objects', '[{"x":1},{"X":1}]'],
  ])('[S-03] may be any otherwise: %s', (_, text) => {
    expect(scanJson(Buffer.from(text), 100, judged).ok).toBe(true);
  });

  it('[S-03] are judged also where a text before, of a server, had the same ones', () => {
    for (const key of ['Method', 'method', 'METHOD', 'x', 'X']) {
      const text = Buffer.from(`{"id":1,"${key}":2}`);
      expect(scanJson(text, 100).ok).toBe(true);
      expect(scanJson(text, 100, judged).ok).toBe(key === 'method' || key.toLowerCase() === 'x');
    }
  });

  it.each([
    ['{"x":1,"Name":2}', '{"zzz":1,"zzZ":2}', '{"name":1,"Name":2}', false],
    ['{"cursor":1}', '{"Name":1}', '{"cursor":1}', true],
    ['{"ref":1}', '{"Name":1}', '{"ref":1}', true],
  ])(
    '[G-01] [G-05] [S-19] [S-03] are judged alone, whatever was read or refused before: %s %s %s',
    (first, refused, last, isTaken) => {
      const [before, between, text] = [first, refused, last].map((params) => Buffer.from(`{"params":${params}}`));
      for (const firstLimits of [defaultLimits, judged]) {
        scanJson(before as Buffer, 100, firstLimits);
        expect(scanJson(between as Buffer, 100, judged).ok).toBe(false);
        expect(scanJson(text as Buffer, 100, judged).ok).toBe(isTaken);
      }
    },
  );
});
