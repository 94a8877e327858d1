import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire, Module } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';

/** A process that ran for so long, in seconds, has run most of the functions that a start needs. */
const usefulAfter = 0.5;

const checksumBytes = 4;

/**
 * Loads a file of CommonJS as `require` does, with the compiled code that an earlier process has kept. If there is none,
 * this process keeps its own when it exits. For Node.js before 22.8; newer ones do so themselves.
 * @param file the path of the file. It uses `importNear` in place of `import()`, which a script of its own cannot use.
 * @param folder where compiled code is kept. Without the right to write there, nothing is kept.
 */
export function requireCompiled<Exports>(file: string, folder: string): Exports {
  const source = readFileSync(file);
  // V8 itself compares only the length of the source.
  const kept = join(folder, `${basename(file)}-${crc32(source)}-${process.version}-${process.arch}`);
  const cachedData = readKept(kept);
  const code = `(function(exports,require,module,__filename,__dirname,importNear){${source}\n})`;
  const script = new Script(code, { filename: file, ...(cachedData && { cachedData }) });
  if (cachedData === undefined || script.cachedDataRejected === true) keepAtExit(script, kept);
  const module = new Module(file);
  module.filename = file;
  const require = createRequire(file);
  // Later parts of the program ask for the same exports.
  require.cache[file] = module;
  const importNear = (path: string): Promise<unknown> => import(new URL(path, pathToFileURL(file)).href);
  script.runInThisContext().call(module.exports, module.exports, require, module, file, dirname(file), importNear);
  module.loaded = true;
  return module.exports as Exports;
}

/** The code in a file; undefined if there is none, or if it is damaged, which V8 would not notice. */
function readKept(path: string): Buffer | undefined {
  try {
    const bytes = readFileSync(path);
    const code = bytes.subarray(checksumBytes);
    return bytes.length > checksumBytes && crc32(code) === bytes.readUInt32BE(0) ? code : undefined;
  } catch {
    return undefined;
  }
}

function keepAtExit(script: Script, path: string): void {
  process.once('exit', () => {
    if (process.uptime() < usefulAfter) return;
    const code = script.createCachedData();
    const checksum = Buffer.alloc(checksumBytes);
    checksum.writeUInt32BE(crc32(code));
    const temporary = `${path}-${process.pid}`;
    try {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(temporary, Buffer.concat([checksum, code]));
      // Others see all of it, or nothing.
      renameSync(temporary, path);
    } catch {
      // Starts take longer, as they do where this process may not write.
    }
  });
}
