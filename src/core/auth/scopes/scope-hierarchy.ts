/** Splits a space-delimited list of scopes (RFC 6749, section 3.3). */
export const splitScopes = (text: string): string[] => text.split(' ').filter((scope) => scope !== '');

/** The scopes that each broader scope implies (2026-07-28, basic/authorization, "Step-Up Authorization Flow"). */
export type ScopeHierarchy = ReadonlyMap<string, readonly string[]>;

const flat: ScopeHierarchy = new Map();

/** Returns these scopes and all scopes that they imply, over any number of steps. */
export function withImplied(scopes: Iterable<string>, hierarchy: ScopeHierarchy = flat): ReadonlySet<string> {
  const all = new Set(scopes);
  for (const scope of all) {
    // The iteration of a Set includes members that are added meanwhile.
    for (const implied of hierarchy.get(scope) ?? []) all.add(implied);
  }
  return all;
}
