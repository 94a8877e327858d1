import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** NODE_OPTIONS refuses this flag, and so does Node.js 20 as an argument. The image has Node.js 24 (docs/decisions/0085). */
const onlyInImage = '--no-maglev-destroy-on-background';

describe('[E-07] the flags of V8', () => {
  it('are set by no part of the program, since Node.js promises nothing of those that are set while it runs', () => {
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.ts'),
    );
    expect(files.length).toBeGreaterThan(100);
    expect(files.filter((path) => read(join('src', path)).includes('setFlagsFromString'))).toEqual([]);
  });

  it('are the same in the image and in the unit but for one, and this Node.js takes them as arguments and as NODE_OPTIONS', () => {
    const [, image = ''] = /^ENTRYPOINT .*"node", ((?:"--[^"]+", )+)/m.exec(read('Dockerfile')) ?? [];
    const ofImage = [...image.matchAll(/"(--[^"]+)"/g)].map(([, flag]) => flag as string);
    const [, ofUnit = ''] =
      /^Environment=.*NODE_OPTIONS=([^"\n]+)"?$/m.exec(read('deploy/systemd/mcp-gangway.service')) ?? [];
    expect(ofUnit.split(' ').length).toBeGreaterThan(0);
    expect([...ofUnit.split(' '), onlyInImage]).toEqual(ofImage);
    const isRefused = Number.parseInt(process.versions.node, 10) < 22;
    const known = isRefused ? ofImage.filter((flag) => flag !== onlyInImage) : ofImage;
    const program = ['-p', 'process.execArgv.concat(process.env.NODE_OPTIONS ?? []).join(" ")'];
    const env = { ...process.env, NODE_OPTIONS: '' };
    const taken = execFileSync(process.execPath, [...known, ...program], { env, encoding: 'utf8' });
    const withOptions = { ...env, NODE_OPTIONS: ofUnit };
    expect(taken).toContain(ofUnit);
    expect(execFileSync(process.execPath, program, { env: withOptions, encoding: 'utf8' })).toContain(ofUnit);
  });
});
