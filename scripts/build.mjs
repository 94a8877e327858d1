// Builds dist from src: one file for the code of every start, and chunks for optional code, such as the Redis client.
// Bundling shortens the start, which would otherwise mostly load hundreds of files. npm installs the libraries from
// package.json, except for those in `bundled`. `npm run types` checks the types.
import { chmodSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename } from 'node:path';
import { build } from 'esbuild';

/**
 * The libraries that are part of the bundle, because every start needs a small part of their many files
 * (docs/decisions/0085). package.json names exact versions, so that audits see the version in the bundle.
 */
const bundled = ['zod'];

const { dependencies, optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));

/**
 * Reads the modules of Node.js with `process.getBuiltinModule`. An `import` of `node:http` would read all of its
 * members, and so load the HTTP client that is built into Node.js, which takes half as long as all other modules.
 */
const builtins = {
  name: 'builtins',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: 'builtin', sideEffects: false }));
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => {
      if (!builtinModules.includes(path.slice('node:'.length))) throw new Error(`${path} is no module of Node.js`);
      const names = Object.keys(process.getBuiltinModule(path)).filter((name) => /^[A-Za-z]\w*$/.test(name));
      const contents = [
        `const $builtin = process.getBuiltinModule('${path}');`,
        'const $read = (name) => $builtin[name];',
        'export default $builtin;',
        // Without the annotation, unused members would be read, too.
        ...names.map((name) => `export const ${name} = /* @__PURE__ */ $read('${name}');`),
      ];
      return { contents: contents.join('\n') };
    });
  },
};

// `.compiled` is the cache of compiled code.
for (const folder of ['dist', '.compiled']) rmSync(folder, { recursive: true, force: true });
const options = {
  outdir: 'dist',
  bundle: true,
  metafile: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  sourcemap: true,
  // Names stay, and lines stay short, so that a stack trace still shows where a fault was.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 200,
  chunkNames: '[name]-[hash]',
  logLevel: 'warning',
};
const external = Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !bundled.includes(name));
const { metafile } = await build({
  ...options,
  splitting: true,
  entryPoints: ['src/start.ts'],
  external,
  plugins: [builtins],
});
await joinChunksOfStart(metafile.outputs);
await build({ ...options, entryPoints: ['src/main.ts'] });

const licences = bundled.map((name) => {
  const text = readFileSync(`node_modules/${name}/LICENSE`, 'utf8');
  return `${name} ${dependencies[name]}\n\n${text}`;
});
const licenceHead = 'The files in this folder contain parts of these libraries.';
writeFileSync('dist/LICENSES.txt', [licenceHead, ...licences].join('\n\n'));
// Next to the code that reads them: chunks are in the same folder as `main.js`.
cpSync('src/core/backend/stdio/starter/starter-process.cjs', 'dist/starter-process.cjs');
cpSync('src/features/redis/scripts', 'dist/scripts', { recursive: true });
cpSync('packages/console/src/page', 'dist/page', { recursive: true });
chmodSync('dist/main.js', 0o755);

/**
 * Joins the chunks that every start loads into one file. There are a hundred of them, since code that an optional chunk
 * needs too is apart from the rest, and a file costs a quarter of a millisecond, however small it is. Each chunk that an
 * optional one imports stays, as a file that takes its exports from the joined one. That is CommonJS, since all versions
 * of Node.js can keep the compiled code of it (src/app/compiled-code.ts).
 * @param chunks the outputs of esbuild, by their paths
 */
async function joinChunksOfStart(chunks) {
  const paths = Object.keys(chunks).filter((path) => path.endsWith('.js'));
  const nextTo = (path) => `./${basename(path)}`;
  const withImports = (path, found = new Set()) => {
    if (found.has(path)) return found;
    found.add(path);
    for (const { path: next, kind, external } of chunks[path].imports)
      if (kind === 'import-statement' && !external) withImports(next, found);
    return found;
  };
  const joined = [...withImports('dist/start.js')];
  const optional = paths.filter((path) => !joined.includes(path));
  const stillImported = new Set(optional.flatMap((path) => chunks[path].imports.map(({ path: next }) => next)));
  const shared = joined.filter((path) => stillImported.has(path));
  /** The export of the joined file for an export of one of its chunks. */
  const joinedName = (path, name) => `_${joined.indexOf(path)}${name}`;
  const contents = [
    `export * from './start.js';`,
    ...shared.map((path) => {
      const names = chunks[path].exports.map((name) => `${name} as ${joinedName(path, name)}`);
      return `export { ${names.join(', ')} } from '${nextTo(path)}';`;
    }),
  ].join('\n');
  // Optional code stays apart. Only the program itself can import it, if it has compiled the joined file itself.
  const load = ({ path }) => ({ contents: readFileSync(path, 'utf8').replaceAll('import("./', 'importNear("./') });
  const banner = [
    "const ownUrl=require('node:url').pathToFileURL(__filename).href;",
    'var importNear;importNear??=path=>import(path);',
  ];
  await build({
    ...options,
    stdin: { contents, resolveDir: 'dist' },
    outdir: undefined,
    outfile: 'dist/start.cjs',
    format: 'cjs',
    packages: 'external',
    define: { 'import.meta.url': 'ownUrl' },
    banner: { js: banner.join('') },
    plugins: [{ name: 'apart', setup: ({ onLoad }) => onLoad({ filter: /\.js$/ }, load) }],
  });
  for (const path of joined) {
    rmSync(`${path}.map`);
    rmSync(path);
  }
  for (const path of shared) {
    const names = chunks[path].exports.map((name) => `${joinedName(path, name)}:${name}`);
    const lines = [
      `import*as $module from"node:module";`,
      `export const{${names.join(',')}}=$module.createRequire(import.meta.url)("./start.cjs");`,
    ];
    writeFileSync(path, lines.join('\n'));
  }
}
