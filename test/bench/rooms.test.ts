import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

interface RoomShare {
  readonly room: string;
  readonly own: number;
  readonly withNode: number;
}

const { roomsOf } = (await import(`${root}bench/lib/rooms.mjs`)) as {
  roomsOf(profile: object, lastMs: number): { writes: number; rooms: readonly RoomShare[] };
};

const folder = mkdtempSync(join(tmpdir(), 'gangway-rooms-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The URL of a built file that was made from one source file. */
function built(source: string): string {
  const file = join(folder, 'main.js');
  writeFileSync(`${file}.map`, JSON.stringify({ version: 3, sources: [source], names: [], mappings: 'AAAA' }));
  return pathToFileURL(file).href;
}

/** A node of a CPU profile; without a URL, a native function. */
const node = (id: number, functionName: string, url: string, children: readonly number[] = []): object => ({
  id,
  callFrame: { functionName, url, lineNumber: 0, columnNumber: 0 },
  children,
});

it('counts what a room calls in Node.js as its own, but no write, and only the end of the profile', () => {
  const nodes = [
    node(1, '(root)', '', [2, 8]),
    node(2, 'onRequest', 'node:_http_server', [3]),
    node(3, 'handle', built('../src/core/http/endpoints/post.ts'), [4, 6]),
    node(4, 'setTimeout', 'node:timers', [5]),
    node(5, 'now', ''),
    node(6, 'send', 'file:///a/node_modules/@b/c/index.js', [7]),
    node(7, 'writev', ''),
    node(8, '(idle)', ''),
  ];
  const profile = { nodes, samples: [3, 2, 3, 4, 5, 6, 7, 8], timeDeltas: [9_000, 10, 20, 30, 40, 50, 50, 1_000] };
  const { writes, rooms } = roomsOf(profile, 1.2);
  expect(writes * 200).toBeCloseTo(50);
  expect(rooms.map(({ room, own, withNode }) => [room, Math.round(own * 150), Math.round(withNode * 150)])).toEqual([
    ['src/http', 20, 140],
    ['Node.js', 80, 10],
    ['@b/c', 50, 0],
  ]);
});
