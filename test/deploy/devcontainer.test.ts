import { existsSync, readFileSync } from 'node:fs';
import { type ParseError, parse } from 'jsonc-parser';
import { describe, expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

/** .devcontainer: that it can be read, and has what the tests need. */

const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');

describe('.devcontainer', () => {
  const errors: ParseError[] = [];
  const container = parse(read('.devcontainer/devcontainer.json'), errors, { allowTrailingComma: false });
  const dockerfile = read(`.devcontainer/${container.build.dockerfile}`);

  it('is valid, and runs as a user without rights', () => {
    expect(errors).toEqual([]);
    expect(container).toMatchObject({ remoteUser: 'node', init: true, postCreateCommand: 'npm ci' });
    expect(existsSync(`${root}package-lock.json`)).toBe(true);
  });

  it('has the Node.js of the image', () => {
    const [from] = /^FROM \S+/m.exec(dockerfile) ?? [];
    expect(read('Dockerfile')).toContain(`\n${from} AS base\n`);
    expect(Number(/node:(\d+)/.exec(from ?? '')?.[1])).toBeGreaterThanOrEqual(20);
  });

  it('has every program that the tests need, Redis among them', () => {
    const packages = [...read('scripts/preflight.mjs').matchAll(/ apt: '([\w-]+)'/g)].map(([, name]) => name);
    expect(packages).toContain('redis-server');
    const [, words = ''] = /--no-install-recommends ([^&]*)/.exec(dockerfile) ?? [];
    const installed = words.split(/[\s\\]+/);
    expect(packages.filter((name) => !installed.includes(name ?? ''))).toEqual([]);
  });
});
