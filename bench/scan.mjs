// The processor time of reading one text of 64 MiB, of each kind that was made to cost much, in milliseconds. Each line has the
// least and the median of some runs in one go, and the longest step where the text is read in steps (docs/decisions/0146).
// `npm run build && node bench/scan.mjs [runs] [kinds]`, on a quiet machine.
import { cpuMsOf, longestStepMs } from './lib/cpu-time.mjs';
import { importSource } from './lib/source.mjs';

const { maxServerDepth, readBody, SteppedScan } = await importSource(
  "export * from './src/protocol/message/message.ts'; export { SteppedScan } from './src/protocol/json/scan.ts';",
);

const size = 64 * 2 ** 20;
const runs = Number(process.argv[2] ?? 5);

const filled = (part) => Buffer.alloc(size, part);
/** A response whose result is a list of these parts, as many as there is room for, but no more. */
function listOf(part, count = Number.POSITIVE_INFINITY) {
  const head = '{"jsonrpc":"2.0","id":1,"result":{"a":[';
  const times = Math.floor(Math.min(count, (size - 100) / part.length));
  const text = Buffer.alloc(head.length + times * part.length + 10);
  text.fill(part, head.length);
  text.write(head);
  text.write('0]}}'.padEnd(10), text.length - 10);
  return text;
}
function membersOf(part, count) {
  const text = listOf(part, count);
  text[text.indexOf('[')] = 0x7b;
  text.write('"":0}}}', text.length - 10);
  return text;
}
function around(before, part, after) {
  const text = filled(part);
  text.write(before);
  text.write(after, size - after.length);
  return text;
}
const response = '{"jsonrpc":"2.0","id":1,"result":';
/** So much is there of one value if there are as many as may be. */
const share = size / 2 ** 20;

/** One value of as many bytes as there are for each if there are as many as may be. */
const padded = (value, by) => `${value.padEnd(share - 1, by)},`;
const x = 'x'.repeat(100);

const kinds = {
  'plain string': () => around(`${response}"`, 'x', '"}'),
  'one string with two million escapes': () => {
    const text = around(`${response}"`, `${x.slice(0, 30)}\\n`, '"}');
    text.write('x'.repeat(4_000), size - 4_010);
    return text;
  },
  'escapes, more': () => around(`${response}"x`, '\\n', 'nn"}'),
  'small values, 2^20': () => listOf('0,', 2 ** 20 - 100),
  'small values, more': () => listOf('0,'),
  'lists in lists': () => listOf('[[[[[[[[0]]]]]]]],'),
  'white space': () => around(response, ' ', '0}'),
  'white space of all kinds': () => around(response, ' \n\t\r', '0}'),
  'white space before each of 2^20 values': () =>
    listOf(`${' \n\t\r'.repeat(16).slice(0, share - 2)}0,`, 2 ** 20 - 100),
  'one number': () => around(response, '7', '}'),
  'numbers of 63 digits': () => listOf(padded('7', '7'), 2 ** 20 - 100),
  'numbers of 7 digits': () => listOf('1234567,', 2 ** 20 - 100),
  'strings of 20 bytes': () => listOf(`"${x.slice(0, 20)}",`, 2 ** 20 - 100),
  'strings of 36 bytes': () => listOf(`"${x.slice(0, 36)}",`, 2 ** 20 - 100),
  'strings of 61 bytes': () => listOf(`"${x.slice(0, 61)}",`, 2 ** 20 - 100),
  'half a million strings with two escapes': () => listOf(`"${`${x.slice(0, 60)}\\n`.repeat(2)}",`, 2 ** 19 - 100),
  'values without end in 8 MiB': () => listOf('0,', 4 * 2 ** 20 - 100),
  'empty strings without end in 8 MiB': () => listOf('"",', 2.7 * 2 ** 20),
  'members without end in 8 MiB': () => membersOf('"":0,', 1.6 * 2 ** 20),
  'escapes without end in 8 MiB': () => listOf(`"${'\\n'.repeat(4 * 2 ** 20 - 100)}",`, 1),
  'values in 16 MiB': () => listOf('"xxxxx",', 2 ** 21 - 100),
  'members in 16 MiB': () => membersOf('"xxx":0,', 2 ** 21 - 200),
  'members in 32 MiB': () => membersOf(`"${x.slice(0, 27)}":0,`, 2 ** 20 - 100),
  'keys of 26 and strings of 25 bytes': () => listOf(`{"${x.slice(0, 26)}":"${x.slice(0, 25)}"},`, 2 ** 19 - 100),
  'members with keys and strings of 28 bytes': () =>
    membersOf(`"${x.slice(0, 28)}":"${x.slice(0, 28)}",`, 2 ** 20 - 100),
  'members with keys and strings of 17 bytes': () =>
    membersOf(`"${x.slice(0, 17)}":"${x.slice(0, 17)}",`, 2 ** 20 - 100),
  'members with keys and spaces': () =>
    membersOf(`"${x.slice(0, 18)}"         :         "${x.slice(0, 18)}"         ,`, 2 ** 20 - 100),
  'members with keys and numbers': () =>
    membersOf(`"${x.slice(0, 20)}"         :         7777777777    ,          `, 2 ** 20 - 100),
  'members with keys of 58 bytes': () => membersOf(`"${x.slice(0, 58)}":0,`, 2 ** 20 - 100),
};

const only = process.argv[3];
for (const [kind, make] of Object.entries(kinds)) {
  if (only && !new RegExp(only).test(kind)) continue;
  const text = make();
  const taken = [];
  let outcome;
  for (let run = 0; run < runs; run += 1) {
    const again = text.subarray(0); // what was read before is known
    let body;
    const readMs = cpuMsOf(() => {
      body = readBody(again, maxServerDepth);
    });
    taken.push(readMs);
    outcome = body.ok ? (body.messages[0].message.isUnread ? 'refused' : 'read') : body.reason;
  }
  taken.sort((a, b) => a - b);
  const longest = Array.from({ length: runs }, () => longestStepMs(createScan(text))).sort((a, b) => a - b)[0];
  const times = [taken[0], taken[runs >> 1], longest].map((ms) => ms.toFixed(0).padStart(5));
  process.stdout.write(`${kind.padEnd(40)} ${times.join(' ')}  ${outcome}\n`);
}

/** A new scan of a text: what was read before is known. */
function createScan(text) {
  return new SteppedScan(text.subarray(0), maxServerDepth, () => undefined);
}
