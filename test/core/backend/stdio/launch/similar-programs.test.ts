import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { similarPrograms } from '../../../../../src/core/backend/stdio/launch/similar-programs.ts';
import { explainSpawnFailure } from '../../../../../src/core/backend/stdio/launch/spawn-failure.ts';

let folder = '';
let large = '';
const write = (name: string, mode = 0o755): void => {
  writeFileSync(join(folder, name), '');
  chmodSync(join(folder, name), mode);
};
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gangway-path-'));
  large = mkdtempSync(join(tmpdir(), 'gangway-path-'));
  for (const name of ['node', 'npx', 'npm', 'uvx', 'python3', 'docker', 'w']) write(name);
  write('notes', 0o644);
  mkdirSync(join(folder, 'nodes'));
  for (let index = 0; index < 20_000; index++) writeFileSync(join(large, `tool-${index}`), '');
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(large, { recursive: true });
});

describe('the programs that a wrong name probably means', () => {
  it.each([
    ['nodee', ['node']],
    ['ndoe', ['node']],
    ['nod', ['node']],
    ['pyhton3', ['python3']],
    ['python', ['python3']],
    ['dokcre', ['docker']],
    ['npz', ['npm', 'npx']],
    ['note', ['node']],
    ['x', []],
    ['nodejs-server', []],
    ['./node1', []],
    ['n'.repeat(1000), []],
  ])('of %s are %j', (name, found) => {
    expect(similarPrograms(name, `/none:${folder}::${folder}/node`)).toEqual(found);
  });

  it('[P8] are sought among a limited number of names, once for each wrong name', () => {
    const path = `${large}:${folder}`;
    const began = performance.now();
    expect(similarPrograms('nodee', path)).toEqual([]);
    const firstMs = performance.now() - began;
    rmSync(large, { recursive: true });
    expect(similarPrograms('nodee', path), 'the folders are not read again').toEqual([]);
    mkdirSync(large);
    expect(firstMs).toBeLessThan(2_000);
  });

  it('are proposed to the operator', () => {
    const error = Object.assign(new Error('spawn'), { code: 'ENOENT' });
    const program = { command: 'nodee', args: ['server.js'], env: { PATH: folder }, isOnCommandLine: true };
    expect(explainSpawnFailure(error, program).detail).toBe(
      `The command nodee was not found in PATH. Did you mean node? Install it, or write its full path after "--". PATH is ${folder}.`,
    );
    expect(explainSpawnFailure(error, { ...program, command: 'quux' }).detail).not.toContain('Did you mean');
  });
});
