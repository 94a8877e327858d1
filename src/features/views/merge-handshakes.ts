import { scalarAt } from '../../core/protocol/json.ts';
import { isObject } from '../../core/util/is-object.ts';
import type { Member } from './member.ts';
import { unavailableKey } from './view-lists.ts';

/** The identity that a view reports to its clients. */
export interface ViewIdentity {
  readonly name: string;
  readonly version: string;
}

/** Instructions beyond this length are left out: the answer to `initialize` stays in the record of a session (P8). */
const maxInstructionsLength = 64 * 1024;

/**
 * The response of a view to `initialize`. The view speaks the newest revision of its servers, and declares every
 * capability that one of them declares. Undefined if no server has answered.
 */
export function mergeHandshakes(
  idText: string,
  identity: ViewIdentity,
  members: readonly Member[],
): Buffer | undefined {
  const known = members.filter(({ handshake }) => handshake !== undefined);
  const versions = known.map(({ handshake }) => handshake?.protocolVersion ?? '').sort();
  const protocolVersion = versions.at(-1); // revisions are dates, so they compare as text
  if (protocolVersion === undefined) return undefined;
  const capabilities = known.reduce<unknown>((merged, { handshake }) => merge(merged, handshake?.capabilities), {});
  const unavailable = members.filter(({ isReady }) => !isReady).map(({ name }) => name);
  const instructions = mergeInstructions(known);
  const result = {
    protocolVersion,
    capabilities,
    serverInfo: identity,
    ...(instructions !== '' && { instructions }),
    ...(unavailable.length > 0 && { _meta: { [unavailableKey]: unavailable } }),
  };
  return Buffer.from(`{"jsonrpc":"2.0","id":${idText},"result":${JSON.stringify(result)}}`);
}

/** Merges declared capabilities: what one server declares is declared. */
function merge(a: unknown, b: unknown): unknown {
  if (!isObject(a)) return isObject(b) || a === undefined || a === false ? (b ?? a) : a;
  if (!isObject(b)) return a;
  const merged = new Map(Object.entries(a));
  for (const [key, value] of Object.entries(b)) merged.set(key, merge(merged.get(key), value));
  return Object.fromEntries(merged);
}

function mergeInstructions(members: readonly Member[]): string {
  const texts = members.flatMap(({ name, greeting }) => {
    const own = greeting && scalarAt(greeting, ['result', 'instructions']);
    return typeof own === 'string' && own !== '' ? [members.length === 1 ? own : `# ${name}\n\n${own}`] : [];
  });
  let merged = '';
  for (const text of texts) {
    const longer = merged === '' ? text : `${merged}\n\n${text}`;
    if (longer.length <= maxInstructionsLength) merged = longer;
  }
  return merged;
}
