// What a result depends on beside the programs: machine, versions, backend, time.
import { spawnSync } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { ourProgram } from '../targets.mjs';

/** What the numbers of docs/benchmarks.md were measured with. */
const nodeMajor = '24';

/** What to say if they are not to be compared with those of this Node.js; undefined if they are. */
export const unlikeness = () =>
  process.versions.node.split('.')[0] === nodeMajor
    ? undefined
    : `this is Node.js ${process.versions.node}; the numbers of docs/benchmarks.md are of ${nodeMajor}`;

export const describeMachine = (backend, targets) => ({
  machine: {
    cpus: os.cpus().length,
    cpu: os.cpus()[0].model,
    gib: Math.round(os.totalmem() / 2 ** 30),
    kernel: os.release(),
  },
  node: process.version,
  backend: backend.name,
  commit: commitOf(ourProgram),
  peers: Object.fromEntries(targets.filter(({ isPeer }) => isPeer).map(({ name, version }) => [name, version()])),
  at: new Date().toISOString(),
});

/** The commit that a program was built from, as far as its folder says; `-dirty` if there are changes beside. */
function commitOf(program) {
  const { stdout } = spawnSync('git', ['describe', '--always', '--dirty', '--exclude', '*'], {
    cwd: path.dirname(program),
    encoding: 'utf8',
  });
  return stdout?.trim() || undefined;
}
