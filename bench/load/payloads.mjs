// The payloads of echo calls. All are written as JSON.stringify writes them, so that a gateway that parses and serializes
// again returns the same bytes.
import { createRandom } from '../lib/random.mjs';

const plain = 'the quick brown fox jumps over the lazy dog and 0123456789 others ';
/** Each escape costs a look; `\u0001` is the longest that JSON.stringify writes. */
const escapes = 'a\\"b\\n\\\\c\\t\\u0001 ';
const tokens = '{"a":1,"b":[true,null,-2.5,"c",{}],"d":{"e":[]}}';

const vocabulary = plain.trim().split(' ').concat('I', 'gateway', 'message', "isn't", 'unbelievably', 'of', 'server');
/** Lines of code, which have quotes, backslashes and tabs. */
const lines = [
  'export function readLine(text, start = 0) {',
  '  const end = text.indexOf("\\n", start); // -1: the last line',
  '  if (end === -1) return { line: text.slice(start), rest: "" };',
  "\treturn names.map((name) => `'` + name + `'`).join(', ');",
  '}',
  '',
];
const foreign = 'Größe Übermaß ёлка μῆνιν 日本語の文章 数据 naïve 🚀 plain words … “quoted”'.split(' ');

/** Every run carries the same bytes. */
function createChooser() {
  const random = createRandom();
  return (values) => values[Math.floor(random() * values.length)];
}

/** Texts that are made of parts, which are added until the text is long enough: `(choose, index)` returns one part. */
const texts = {
  words: (choose, index) =>
    `${index % 9 === 4 ? `"${choose(vocabulary)}"` : choose(vocabulary)}${index % 12 === 11 ? '.\n' : ' '}`,
  code: (choose) => `${choose(lines)}\n`,
  json: (choose, index) =>
    `${JSON.stringify({ id: index, name: choose(vocabulary), tags: [choose(vocabulary)] }, null, 1)},\n`,
  unicode: (choose, index) => `${choose(foreign)}${index % 12 === 11 ? '.\n' : ' '}`,
};

/** A text of `bytes` bytes or a few more, as it stands in JSON between the quotes. */
function textOf(kind, bytes) {
  const choose = createChooser();
  const parts = [];
  let length = 0;
  while (length < bytes) {
    const part = JSON.stringify(texts[kind](choose, parts.length)).slice(1, -1);
    parts.push(part);
    length += Buffer.byteLength(part);
  }
  return parts.join('');
}

const repeat = (text, bytes) => text.repeat(Math.ceil(bytes / text.length));

/**
 * The parts of an echo call of about `bytes` bytes: its arguments are `before`, a tag of the caller, then `after`. The
 * answer has `"text":"<tag>` and, right behind `marker(tag)`, the text `expected`. Answers are read as Latin-1, so
 * `expected` has one character for each byte.
 */
export function createPayload(kind, bytes) {
  if (kind === 'tokens') {
    const data = `{"rows":[${repeat(`${tokens},`, bytes - 10).slice(0, -1)}]}`;
    return { after: Buffer.from(`","data":${data}}}}`), expected: data, marker: () => '"structuredContent":' };
  }
  const text = Buffer.from(`${jsonTextOf(kind, bytes)}"`);
  return {
    after: Buffer.concat([text, Buffer.from('}}}')]),
    expected: text.latin1Slice(),
    marker: (tag) => tag,
  };
}

function jsonTextOf(kind, bytes) {
  if (kind === 'string') return repeat(plain, bytes).slice(0, bytes);
  return kind === 'escapes' ? repeat(escapes, bytes) : textOf(kind, bytes);
}
