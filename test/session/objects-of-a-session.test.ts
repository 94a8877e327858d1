import { readdirSync, readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { getHeapSnapshot } from 'node:v8';
import { expect, it } from 'vitest';
import { openSessions } from './open-sessions.ts';
import { turn } from './session-fixture.ts';

const sessionsCounted = 40;

/** The names of the gateway's own classes, outside of the folder `backend`: the servers of the test are not real. */
const ownClasses = new Set(
  readdirSync(fileURLToPath(new URL('../../src', import.meta.url)), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith('backend'))
    .flatMap((file) => [
      ...readFileSync(fileURLToPath(new URL(`../../src/${file}`, import.meta.url)), 'utf8').matchAll(
        /^(?:export )?(?:abstract )?class (\w+)/gm,
      ),
    ])
    .map(([, name]) => name as string),
);

interface Snapshot {
  readonly snapshot: { readonly meta: { readonly node_fields: string[]; readonly node_types: [string[]] } };
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
}

/** How many objects of each own class are alive. */
async function countObjects(): Promise<Map<string, number>> {
  const { snapshot, nodes, strings } = JSON.parse(await text(getHeapSnapshot())) as Snapshot;
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const object = types[0].indexOf('object');
  const [type, name] = [fields.indexOf('type'), fields.indexOf('name')];
  const counts = new Map<string, number>();
  for (let at = 0; at < nodes.length; at += fields.length) {
    const className = strings[nodes[at + name] as number] as string;
    if (nodes[at + type] !== object || !ownClasses.has(className)) continue;
    counts.set(className, (counts.get(className) ?? 0) + 1);
  }
  return counts;
}

it('an idle session has at most 50 objects', async () => {
  const sessions = openSessions({}, sessionsCounted + 1);
  await sessions.open(); // what all sessions share
  await turn();
  const before = await countObjects();
  for (let count = 0; count < sessionsCounted; count += 1) await sessions.open();
  await turn();
  const after = await countObjects();
  const perSession = [...after]
    .map(([name, count]) => [name, (count - (before.get(name) ?? 0)) / sessionsCounted] as const)
    .filter(([, count]) => count >= 0.5);
  const sum = perSession.reduce((total, [, count]) => total + Math.round(count), 0);
  expect(sum, perSession.map(([name, count]) => `${name} ${count}`).join(', ')).toBeLessThanOrEqual(50);
});
