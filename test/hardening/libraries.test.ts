import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

/** The first version without the faults of the advisories, and those that were mended last. */
const mended = [
  ['hono', [4, 12, 25]], // CVE-2026-44456, CVE-2026-54288, CVE-2026-29085, CVE-2026-47676, CVE-2026-47673
  ['@hono/node-server', [1, 19, 13]], // CVE-2026-29087, CVE-2026-39406
] as const;

const isAtLeast = (version: readonly number[], least: readonly number[]): boolean => {
  const index = least.findIndex((part, at) => version[at] !== part);
  return index === -1 || (version[index] ?? 0) > (least[index] as number);
};

it.each(mended)('[A10] %s is installed, and to be installed, in a version that is mended', (name, least) => {
  const lock = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8'));
  const installed = JSON.parse(readFileSync(`${root}node_modules/${name}/package.json`, 'utf8')).version as string;
  for (const version of [lock.packages[`node_modules/${name}`].version as string, installed]) {
    expect({ version, isFine: isAtLeast(version.split('.').map(Number), least) }).toEqual({ version, isFine: true });
  }
});

it('[A10] nothing is used of what had faults: hono’s limits of bodies, streams of events, mounts, files, bearer tokens', () => {
  const files = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  expect(files.length).toBeGreaterThan(100);
  const faulty = /from 'hono\/(?!hono-base'|router')|serveStatic|serve-static|\.mount\(|bodyLimit|streamSSE/;
  expect(files.filter((name) => faulty.test(readFileSync(`${root}src/${name}`, 'utf8')))).toEqual([]);
});
