import fc from 'fast-check';

/** White space of JSON, often none. */
export const space = fc.constantFrom('', '', '', ' ', '\t', '\n', '\r\n', '  ');
export const stringText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }).map((value) => JSON.stringify(value)),
  fc
    .array(
      fc.constantFrom('a', 'é', '€', '🌍', '\\u0061', '\\ud83c\\udf0d', '\\ud800', '\\n', '\\/', '\\\\', '\\"', ' '),
      {
        maxLength: 40,
      },
    )
    .map((parts) => `"${parts.join('')}"`),
);
const numberText = fc.oneof(
  fc.double().filter(Number.isFinite).map(String),
  fc.constantFrom('0', '-0', '1e400', '-1E+400', '0.1e-7', '12345678901234567890', '1.0', '100E2'),
);
export const keyText = fc.oneof(
  fc
    .constantFrom('id', 'method', 'params', '_meta', 'params', '_meta', '__proto__', 'constructor', '')
    .map((key) => `"${key}"`),
  fc.constantFrom('"\\u0069d"', '"\\u0070arams"', '"_met\\u0061"', '"pa\\u0072ams"'),
  stringText,
);
/** JSON texts with white space, escapes and the keys that routing looks for in every place. */
export const jsonText = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: 'small' },
    fc.oneof(stringText, numberText, fc.constantFrom('true', 'false', 'null')),
    tie('array'),
    tie('object'),
    tie('object'),
  ),
  array: fc
    .tuple(space, fc.array(fc.tuple(tie('value'), space), { maxLength: 4 }))
    .map(([gap, items]) => `[${gap}${items.map(([item, after]) => item + after).join(`,${gap}`)}]`),
  object: fc
    .tuple(space, fc.array(fc.tuple(keyText, space, tie('value')), { maxLength: 5 }))
    .map(
      ([gap, members]) =>
        `{${gap}${members.map(([key, after, item]) => `${key}${after}:${gap}${item}`).join(`${gap},${gap}`)}${gap}}`,
    ),
}));
/** Like `jsonText`, but keys are rarely repeated. */
export const messageText = fc
  .tuple(space, jsonText.object, jsonText.value, jsonText.value, keyText)
  .map(
    ([gap, extra, id, meta, key]) =>
      `${gap}{"jsonrpc":"2.0",${gap}"id":${id},"params":{"_meta":{${key}:${meta},"z":${gap}${id}},"x":${extra}}${gap}}${gap}`,
  );
export const anyText = fc.oneof(jsonText.value, jsonText.object, messageText, jsonText.array);

/** The bytes that mean something in JSON and in UTF-8. */
export const bytesOfInterest = Buffer.from(
  '{}[]",:\\u0123eE+-.tfn \t\n\r\x00\x1f\x7f\x80\xbf\xc0\xc3\xa9\xe2\xed\xf0\xf5\xff',
  'latin1',
);
/** One change of a text. */
export const mutation = fc.tuple(
  fc.constantFrom('replace', 'insert', 'delete', 'swap'),
  fc.nat(),
  fc.constantFrom(...bytesOfInterest),
);

/** A text after some changes. */
export function mutate(text: string | Buffer, mutations: readonly (readonly [string, number, number])[]): Buffer {
  const bytes = [...Buffer.from(text as string)];
  for (const [how, place, byte] of mutations) {
    const at = place % (bytes.length + 1);
    if (how === 'insert') bytes.splice(at, 0, byte);
    else if (how === 'delete') bytes.splice(at, 1);
    else if (how === 'replace') bytes[Math.min(at, Math.max(0, bytes.length - 1))] = byte;
    else bytes.splice(at, 2, ...bytes.slice(at, at + 2).reverse());
  }
  return Buffer.from(bytes);
}

/** Members with keys that differ. */
export function keys(count: number): string {
  return Array.from({ length: count }, (_, index) => `"k${index}":${index}`).join();
}
