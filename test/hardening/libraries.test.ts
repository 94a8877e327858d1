import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

/** Routers whose limits, mounts, files and tokens had faults, the last of them CVE-2026-54288 and CVE-2026-39406. */
const routers = ['hono', '@hono/node-server'];

it.each(routers)(
  '[A10] [S-10] %s stands in no request: nothing in production depends on it, and no source uses it',
  (name) => {
    const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8'));
    expect(packages[''].dependencies).not.toHaveProperty([name]);
    const installed = packages[`node_modules/${name}`];
    expect(installed === undefined || installed.dev === true).toBe(true);
    const files = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    );
    expect(files.length).toBeGreaterThan(100);
    expect(files.filter((file) => readFileSync(`${root}src/${file}`, 'utf8').includes(`'${name}`))).toEqual([]);
  },
);
