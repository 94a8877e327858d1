// Compiles the JSON kernel to WebAssembly and writes it as TypeScript beside its source, so that builds and tests need no compiler.
// `node scripts/build-kernel.mjs` writes the file; with `--check` it compares. Both need the compiler of Debian 12:
// `apt-get install clang-14 lld-14`. Another version would make other bytes.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../src/protocol/json/kernel/', import.meta.url));
const artifact = join(folder, 'skip-value-wasm.ts');
const version = '14.0.6';

/** Compiles the source. It throws if the compiler is missing or has another version. */
export function compileKernel() {
  const work = mkdtempSync(join(tmpdir(), 'gangway-kernel-'));
  try {
    const found = execFileSync('clang-14', ['--version'], { encoding: 'utf8' });
    if (!found.includes(` ${version}`)) throw new Error(`clang ${version} is required, and this is ${found}`);
    const [object, wasm] = [join(work, 'kernel.o'), join(work, 'kernel.wasm')];
    const flags = ['-O3', '-msimd128', '-ffreestanding', '-Wall', '-Wextra', '-Werror', '-Wno-implicit-fallthrough'];
    execFileSync('clang-14', ['--target=wasm32', ...flags, '-c', '-o', object, 'skip-value.c'], { cwd: folder });
    const layout = ['--no-entry', '--strip-all', '-z', 'stack-size=1024', '--initial-memory=1048576'];
    execFileSync('wasm-ld-14', [...layout, '-o', wasm, object]);
    return readFileSync(wasm);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The TypeScript of the compiled kernel. */
export function kernelSource(wasm) {
  const lines = wasm.toString('base64').match(/.{1,114}/g);
  return `// Made of skip-value.c by scripts/build-kernel.mjs; do not edit.
export const skipValueWasm = [
${lines.map((line) => `  '${line}',`).join('\n')}
].join('');
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const source = kernelSource(compileKernel());
  if (!process.argv.includes('--check')) writeFileSync(artifact, source);
  else if (readFileSync(artifact, 'utf8') !== source) {
    process.stderr.write(
      'skip-value-wasm.ts is not what skip-value.c compiles to: run node scripts/build-kernel.mjs\n',
    );
    process.exitCode = 1;
  }
}
