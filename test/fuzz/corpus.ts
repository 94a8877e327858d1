import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { mutate, mutation } from '../support/json-texts.ts';

/** The seeds of a subject: each file of its folder, as its bytes. */
export function corpusOf(subject: string): Buffer[] {
  const folder = join(import.meta.dirname, 'corpus', subject);
  return readdirSync(folder)
    .sort()
    .map((name) => readFileSync(join(folder, name)));
}

/** The lines of a corpus of texts that are one line each. */
export const linesOf = (subject: string): string[] =>
  corpusOf(subject).flatMap((bytes) => bytes.toString().split('\n').filter(Boolean));

/** Bytes of a corpus with a few of them changed, or two seeds one behind the other. */
export function mutated(corpus: readonly Buffer[]): fc.Arbitrary<Buffer> {
  const seed = fc.constantFrom(...corpus);
  return fc.oneof(
    fc.tuple(seed, fc.array(mutation, { maxLength: 4 })).map(([bytes, mutations]) => mutate(bytes, mutations)),
    fc.tuple(seed, fc.nat(), seed, fc.nat()).map(([first, to, second, from]) => {
      return Buffer.concat([first.subarray(0, to % (first.length + 1)), second.subarray(from % (second.length + 1))]);
    }),
  );
}

/** Texts of a corpus with a few of their characters changed. */
export const mutatedText = (corpus: readonly string[]): fc.Arbitrary<string> =>
  mutated(corpus.map((text) => Buffer.from(text))).map(String);

/** Where to cut a stream into chunks. */
export const cuts: fc.Arbitrary<readonly number[]> = fc.array(fc.nat(), { maxLength: 12 });

/** Objects with these members, as literals make them. */
export const record = <T>(members: { readonly [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(members, { noNullPrototype: true });
