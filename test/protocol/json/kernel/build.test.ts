import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const hasCompiler = ['clang-14', 'wasm-ld-14'].every((program) => spawnSync(program, ['--version']).status === 0);

// The workflow `check.yml` has a job with the compiler, where this is never skipped.
it('skip-value-wasm.ts is what skip-value.c compiles to', ({ skip }) => {
  if (!hasCompiler) skip('clang-14 and wasm-ld-14 are not installed (Debian 12: apt-get install clang-14 lld-14)');
  const { status, stderr } = spawnSync('node', ['scripts/build-kernel.mjs', '--check'], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
});
