// Builds dist from src: one file for the code of every gateway, and chunks for optional code, such as the Redis client.
// Bundling shortens the start, which would otherwise mostly load hundreds of files. npm installs the libraries from
// package.json, except for those in `bundled`. `npm run types` checks the types.
import { chmodSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
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
await build({
  // The store would be a chunk anyway; bench/scale.mjs needs its name.
  entryPoints: {
    main: 'src/main.ts',
    'redis-store': 'src/features/redis/redis-store.ts',
  },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  external: Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !bundled.includes(name)),
  plugins: [builtins],
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
});
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
