// What echo calls carry. All is ASCII, and written as JSON.stringify would write it, so that a gateway that parses and
// serializes again returns the same bytes.

const words = 'the quick brown fox jumps over the lazy dog and 0123456789 others ';
/** Each escape costs a look; `\u0001` is the longest that JSON.stringify writes. */
const escapes = 'a\\"b\\n\\\\c\\t\\u0001 ';
const tokens = '{"a":1,"b":[true,null,-2.5,"c",{}],"d":{"e":[]}}';

const repeat = (text, bytes) => text.repeat(Math.ceil(bytes / text.length));

/**
 * The parts of an echo call of about `bytes` bytes: its arguments are `before`, a tag of the caller, then `after`. The
 * answer has `"text":"<tag>` and, right behind `marker(tag)`, the text `expected`.
 */
export function createPayload(kind, bytes) {
  if (kind === 'tokens') {
    const data = `{"rows":[${repeat(`${tokens},`, bytes - 10).slice(0, -1)}]}`;
    return { after: Buffer.from(`","data":${data}}}}`), expected: data, marker: () => '"structuredContent":' };
  }
  const text = kind === 'string' ? repeat(words, bytes).slice(0, bytes) : repeat(escapes, bytes);
  return { after: Buffer.from(`${text}"}}}`), expected: `${text}"`, marker: (tag) => tag };
}
