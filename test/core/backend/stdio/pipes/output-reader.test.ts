import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutputReader } from '../../../../../src/core/backend/stdio/pipes/output-reader.ts';
import type { Message } from '../../../../../src/core/protocol/message/message.ts';
import { readServerTexts, type ServerMessages } from '../../../../../src/core/protocol/message/server-texts.ts';
import { flattenLineBreaks, LineSplitter } from '../../../../../src/core/protocol/wire/lines.ts';
import { beginTurn } from '../../../../../src/core/util/timing/work-meter.ts';

const maxLineBytes = 400;

const progress = (token: number | string, n: number, message?: string): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken: token, progress: n, ...(message !== undefined && { message }) },
  });

const fieldsOf = ({ text, kind, id, method, progressToken }: Message): unknown => ({
  text: text.toString(),
  kind,
  id,
  method,
  progressToken,
});

/** What the reader says of chunks: the messages and the noise. */
async function readAll(chunks: readonly Buffer[]) {
  const reader = new OutputReader(maxLineBytes);
  const messages: unknown[] = [];
  const noise: string[] = [];
  const take = ({ messages: read, noise: texts }: ServerMessages): void => {
    messages.push(...read.map(fieldsOf));
    noise.push(...texts.map(String));
  };
  for (const chunk of chunks) {
    beginTurn();
    take(await readServerTexts(reader.linesOf(chunk)));
  }
  const last = await reader.flush();
  if (last !== undefined) take(last);
  return { messages, noise, overflowed: reader.overflowed };
}

/** The same, line by line. */
async function readLineByLine(chunks: readonly Buffer[]) {
  const splitter = new LineSplitter({ maxLineBytes });
  const lines = chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk)));
  const last = splitter.flush();
  if (last !== undefined) lines.push(last);
  const { messages, noise } = await readServerTexts(lines.map((line) => flattenLineBreaks(line)));
  return { messages: messages.map(fieldsOf), noise: noise.map(String), overflowed: splitter.overflowed };
}

/** The parts between these positions, each in memory of its own as a read of a pipe is. */
function cutAt(text: Buffer, positions: readonly number[]): Buffer[] {
  const cuts = [...positions.map((at) => at % (text.length + 1)), 0, text.length].sort((a, b) => a - b);
  return cuts.slice(1).map((to, index) => Buffer.from(text.subarray(cuts[index], to)));
}

describe('the reader of a server’s output', () => {
  it('[P1] reads any output cut anywhere as a reader of single lines does', async () => {
    const burst = fc
      .tuple(fc.constantFrom<number | string>(1, 2, 'a'), fc.nat(1_000), fc.integer({ min: 1, max: 30 }), fc.boolean())
      .map(([token, from, length, hasMessage]) =>
        Array.from({ length }, (_, n) => progress(token, from + n, hasMessage ? `step ${n}` : undefined)),
      );
    const single = fc.constantFrom(
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"notifications/progress"}}',
      `[${progress(1, 5)},${progress(2, 6)}]`,
      'noise',
      '',
      progress(1, 7, 'é'),
      progress(1, 7, 'x'.repeat(maxLineBytes - 95)),
      `${progress(1, 8)} `,
      progress(1, 9).slice(0, -1),
    );
    const part = fc.oneof({ weight: 3, arbitrary: burst }, { weight: 2, arbitrary: single.map((line) => [line]) });
    const lineEnds = fc.oneof(
      { weight: 4, arbitrary: fc.constant('\n') },
      { weight: 1, arbitrary: fc.constant('\r\n') },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(part, lineEnds), { maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 8 }),
        fc.boolean(),
        async (parts, cuts, endsWithLine) => {
          const output = parts.map(([lines, end]) => lines.map((line) => line + end).join('')).join('');
          const text = Buffer.from(endsWithLine ? output : output.slice(0, -1));
          expect(await readAll(cutAt(text, cuts))).toEqual(await readLineByLine([text]));
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('[P8] ends with a line over the limit', async () => {
    const burst = Array.from({ length: 10 }, (_, n) => `${progress(1, n)}\n`).join('');
    const read = await readAll([Buffer.from(burst), Buffer.from(`${burst}${'x'.repeat(maxLineBytes + 1)}\n${burst}`)]);
    expect(read.overflowed).toBe(true);
    expect(read.messages).toHaveLength(20);
  });
});
