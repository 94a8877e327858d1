import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { requireCompiled } from '../../src/app/compiled-code.ts';
import { waitFor } from '../support/wait-for.ts';

interface Program {
  answer(): number;
  later(): Promise<{ readonly said: string }>;
}

describe('requireCompiled', () => {
  let folder = '';
  const kept = (): string => join(folder, 'kept');

  // A process that has just begun keeps nothing.
  beforeAll(() => waitFor(() => process.uptime() > 0.5));

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gangway-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
  });

  function writeProgram(answer: number): string {
    const file = join(folder, 'program.cjs');
    // What `require` has loaded from an earlier text.
    delete createRequire(file).cache[file];
    writeFileSync(file, `exports.answer = () => ${answer}; exports.later = () => importNear('./later.mjs');`);
    writeFileSync(join(folder, 'later.mjs'), "export const said = 'later';");
    return file;
  }

  /** Loads the file, and returns what the process would do at its exit to keep the code. */
  function load(file: string, into = kept()) {
    const before = process.rawListeners('exit');
    const program = requireCompiled<Program>(file, into);
    const [keep, ...others] = process.rawListeners('exit').filter((listener) => !before.includes(listener));
    expect(others).toEqual([]);
    if (keep !== undefined) process.removeListener('exit', keep as () => void);
    return { program, keep: keep as (() => void) | undefined };
  }

  it('runs the file, which can import others beside it', async () => {
    const { program } = load(writeProgram(1));
    expect(program.answer()).toBe(1);
    expect((await program.later()).said).toBe('later');
  });

  it('gives others that require the file the same exports', () => {
    const file = writeProgram(1);
    const { program } = load(file);
    expect(createRequire(file)(file)).toBe(program);
  });

  it('keeps the code once, and uses it', () => {
    const file = writeProgram(1);
    load(file).keep?.();
    expect(readdirSync(kept())).toHaveLength(1);
    const { program, keep } = load(file);
    expect(keep).toBeUndefined();
    expect(program.answer()).toBe(1);
  });

  it('does not use the code of another text of the same length', () => {
    load(writeProgram(1)).keep?.();
    const { program, keep } = load(writeProgram(2));
    expect(program.answer()).toBe(2);
    expect(keep).toBeDefined();
  });

  it('does not use damaged code, and keeps its own in its place', () => {
    const file = writeProgram(1);
    load(file).keep?.();
    const [name = ''] = readdirSync(kept());
    const bytes = readFileSync(join(kept(), name));
    bytes[bytes.length - 9] = (bytes[bytes.length - 9] as number) ^ 1;
    writeFileSync(join(kept(), name), bytes);
    const { program, keep } = load(file);
    expect(program.answer()).toBe(1);
    keep?.();
    expect(load(file).keep).toBeUndefined();
  });

  it('goes on where it may not write', () => {
    const { program, keep } = load(writeProgram(1), '/dev/null/kept');
    keep?.();
    expect(program.answer()).toBe(1);
  });
});
