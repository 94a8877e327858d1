import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

/** What the image says of itself; `node test/run.mjs docker` asks a built one. */

const dockerfile = readFileSync(`${root}Dockerfile`, 'utf8');
const { name, version, description, license } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));

it('has the labels of the package', () => {
  const labels = [...dockerfile.matchAll(/org\.opencontainers\.image\.(\w+)="([^"]*)"/g)];
  expect(Object.fromEntries(labels.map(([, key, value]) => [key, value]))).toEqual({
    title: name,
    description,
    licenses: license,
    version: '$VERSION',
    revision: '$REVISION',
    source: '$SOURCE',
  });
  expect(/^ARG VERSION=(.*)$/m.exec(dockerfile)?.[1]).toBe(version);
});

it('[S-04] has no port for operators until an address is given for it', () => {
  expect(/^ENV .*$/m.exec(dockerfile)?.[0]).toContain(' GANGWAY_LISTEN_ADMIN_HOST=off');
});
