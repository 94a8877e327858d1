import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { root } from './gateway.ts';
import { targetOf } from './measures.ts';
import { passedObjects } from './passed-objects.ts';

type MeasureSources = (root: string) => Record<string, number>;
const { measureSources } = (await import(`${root}scripts/measure.mjs`)) as { measureSources: MeasureSources };

/** A checkout with these files; it is removed with the test. */
function checkoutOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-measures-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

it('counts lines, types, files and folders of a checkout', () => {
  const checkout = checkoutOf({
    'src/main.ts': "import { a } from './a/short.ts';\nimport type { B } from './a/shared.ts';\n",
    'src/a/short.ts': "import type { B } from './shared.ts';\nexport const a = (b: B) => b;\n",
    'src/a/shared.ts': 'export interface B {\n  type: 1;\n}\ntype C = B;\n\nexport abstract class D {}\n',
    'src/a/long.ts': 'call();\n'.repeat(401),
    'src/core/a/b/c/d/deep.lua': 'return 1\n',
    'src/a/notes.txt': 'No code.\n',
    'src/a/tested.ts': 'export const d = 1;\n',
    'src/a/on-demand.ts': 'export const e = 1;\n',
    'src/features/f/feature.ts': "import './../../a/tested.ts';\nimport { p } from './plugged.ts';\n",
    'src/features/f/plugged.ts': "const { e } = await import('../../a/on-demand.ts');\n",
    'test/a/tested.test.ts': "import { d } from '../../src/a/tested.ts';\n",
    'packages/console/src/page/page.js': 'call();\n'.repeat(3),
    'packages/console/src/record.ts': "import './page/page.js';\nexport type E = 1;\n",
    'packages/json-scan/src/scan.ts': 'export type F = 1;\n',
  });
  expect(measureSources(checkout)).toEqual({
    lines: 2 + 2 + 6 + 401 + 1 + 1 + 1 + 2 + 1,
    'console-lines': 5,
    'scan-lines': 1,
    types: 3,
    files: 9,
    'short-files': 7,
    'short-files-of-one': 1,
    'long-files': 1,
    'deep-folders': 1,
  });
});

it('`npm run measure -- --source` prints each number of this checkout beside its target, and ends with 0', () => {
  const table = execFileSync(process.execPath, [`${root}scripts/measure.mjs`, '--source'], { encoding: 'utf8' });
  const counted = measureSources(root);
  expect(counted['files']).toBeGreaterThan(100);
  expect(table.trimEnd().split('\n')).toHaveLength(Object.keys(counted).length + 1);
  const [target, lines] = [targetOf('lines'), counted['lines'] ?? 0];
  const numbers = [lines, target].map((number) => number.toLocaleString('en'));
  expect(table).toMatch(new RegExp(`^lines of src.* ${numbers.join(' +')}  ${lines <= target ? '' : 'not '}met$`, 'm'));
});

it('the objects that a message passes are those of its stack, and one that calls itself counts once', () => {
  const stack = [
    'Error: write',
    '    at Socket.write (node:net:1:1)',
    '    at StdioInput.send (/src/core/backend/stdio/pipes/stdin.ts:1:1)',
    '    at StdioBackend.send (/src/core/backend/stdio/stdio-backend.ts:1:1)',
    '    at Link.sendFrom (/src/core/backend/link/link.ts:1:1)',
    '    at Link.send (/src/core/backend/link/link.ts:1:1)',
    '    at Member.#pass (/src/features/views/member.ts:1:1)',
    '    at Member.send (/src/features/views/member.ts:1:1)',
    '    at ViewBackend.send (/src/features/views/view-backend.ts:1:1)',
    '    at Link.sendFrom (/src/core/backend/link/link.ts:1:1)',
    '    at Link.send (/src/core/backend/link/link.ts:1:1)',
    '    at <anonymous> (/src/core/session/server/server-link.ts:1:1)',
    '    at ServerLink.send (/src/core/session/server/server-link.ts:1:1)',
    '    at Session.post (/src/core/session/session.ts:1:1)',
  ].join('\n');
  expect(passedObjects(stack, 'ServerLink', 'StdioBackend')).toEqual([
    'Link',
    'ViewBackend',
    'Member',
    'Link',
    'StdioBackend',
  ]);
});
