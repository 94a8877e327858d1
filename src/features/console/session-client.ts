import { scalarAt } from '../../core/protocol/json.ts';

/** The limit for a name that a client gives itself (P8). */
const maxLength = 100;

/** Names by the client's `initialize`, because every snapshot asks for them again. */
const known = new WeakMap<Buffer, string>();

/**
 * Returns the name and version that a client gave itself in `initialize` (2025-11-25, basic/lifecycle); empty if it gave
 * none. The client chooses both, so they prove nothing.
 */
export function clientNameOf(initialize: Buffer): string {
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
