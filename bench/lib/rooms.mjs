// Sums a CPU profile of the gateway by the folders of its source.
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** What one write to a socket or a pipe is in a profile. The rest of the system calls is part of `other native code`. */
const writes = new Set(['writev', 'writeLatin1String', 'writeUtf8String', 'writeAsciiString', 'writeBuffer']);
const notMeasured = new Set(['(idle)', '(root)']);
/** What V8 attributes to no function. Other native functions are a part of the room that has called them. */
const unnamed = { '(garbage collector)': 'garbage collection', '(program)': 'other native code' };

/**
 * `writes`: the share of writes in the busy time. A profile is of elapsed time, so the share grows while other programs want the processors.
 * `rooms`: the rest of the busy time by room, in shares of this rest, the largest first.
 *
 * - `own`: the room's own code, with the functions of V8 that it calls, such as those of a `Map`.
 * - `withNode`: with the JavaScript and the native code of Node.js that the room has called, such as `setTimeout`.
 * @param profile a `.cpuprofile`
 * @param lastMs only so much of its end counts, so that start and compilation do not
 */
export function roomsOf({ nodes, samples, timeDeltas }, lastMs) {
  const times = timesOf(samples, timeDeltas, lastMs);
  const own = new Map();
  const withNode = new Map();
  const add = (table, room, time) => table.set(room, (table.get(room) ?? 0) + time);
  const maps = new Map();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  let total = 0;
  let written = 0;
  /** `caller`: the room of the nearest function that is not native; `ours`: the nearest room of the gateway. */
  const walk = (node, caller, ours) => {
    const { functionName, url } = node.callFrame;
    const time = notMeasured.has(functionName) ? 0 : (times.get(node.id) ?? 0);
    const room = url === '' ? caller : roomOf(node.callFrame, maps);
    const next = room.startsWith('src/') ? room : ours;
    if (url === '' && writes.has(functionName)) written += time;
    else {
      const unnamedRoom = url === '' ? unnamed[functionName] : undefined;
      total += time;
      add(own, unnamedRoom ?? room, time);
      add(withNode, unnamedRoom ?? next ?? room, time);
    }
    for (const id of node.children ?? []) walk(byId.get(id), room, next);
  };
  walk(nodes[0], 'Node.js', undefined);
  const names = new Set([...own.keys(), ...withNode.keys()]);
  const rows = [...names].map((room) => ({
    room,
    own: (own.get(room) ?? 0) / total,
    withNode: (withNode.get(room) ?? 0) / total,
  }));
  const rooms = rows.filter(({ own, withNode }) => own + withNode > 0).sort((a, b) => b.withNode - a.withNode);
  return { writes: written / (written + total), rooms };
}

/** The time of each node in the last milliseconds of a profile. */
function timesOf(samples, timeDeltas, lastMs) {
  const times = new Map();
  let rest = lastMs * 1000;
  for (let i = samples.length - 1; i >= 0 && rest > 0; i -= 1) {
    times.set(samples[i], (times.get(samples[i]) ?? 0) + timeDeltas[i]);
    rest -= timeDeltas[i];
  }
  return times;
}

function roomOf({ url, lineNumber, columnNumber }, maps) {
  if (!url.startsWith('file:')) return 'Node.js';
  const library = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url);
  if (library !== null) return library[1];
  if (!maps.has(url)) maps.set(url, readMap(`${fileURLToPath(url)}.map`));
  const source = maps.get(url)?.findEntry(lineNumber, columnNumber)?.originalSource;
  if (source === undefined) return path.basename(url);
  const room = /\/src\/(?:core\/|features\/)?([^/]+)\//.exec(source);
  return room === null ? 'src' : `src/${room[1]}`;
}

const readMap = (file) => (existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : undefined);
