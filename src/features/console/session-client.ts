import type { ConsoleSession } from '../../core/ops/console-hook.ts';
import { scalarAt } from '../../core/protocol/json.ts';

/** The limit for a name that a client gives itself (P8). */
const maxLength = 100;

/** Names by the client's `initialize`, because every snapshot asks for them again. */
const known = new WeakMap<Buffer, string>();

/**
 * Returns the name and version that the client of a session gave itself; empty if it gave none. The client chooses both,
 * so they prove nothing. A session of the gateway's own serves any clients, unless it has the name of its only one.
 */
export function clientNameOf({ kind, initialize }: Pick<ConsoleSession['snapshot'], 'kind' | 'initialize'>): string {
  const name = nameIn(initialize);
  return kind === 'group' && name.startsWith('mcp-gangway ') ? 'clients without a session' : name;
}

/** Reads the name and version in `initialize` (2025-11-25, basic/lifecycle). */
function nameIn(initialize: Buffer): string {
  const found = known.get(initialize);
  if (found !== undefined) return found;
  const parts = ['name', 'version'].map((member) => scalarAt(initialize, ['params', 'clientInfo', member]));
  const name = parts
    .filter((part) => typeof part === 'string')
    .join(' ')
    .slice(0, maxLength);
  known.set(initialize, name);
  return name;
}
