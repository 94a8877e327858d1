/** A space-delimited list of scopes (RFC 6749, section 3.3). */
export const splitScopes = (text: string): string[] => text.split(' ').filter((scope) => scope !== '');

/** Which scopes a broader one stands for (2026-07-28, basic/authorization, "Step-Up Authorization Flow"). */
export type ScopeHierarchy = ReadonlyMap<string, readonly string[]>;

const flat: ScopeHierarchy = new Map();

/** These scopes and all that they stand for, over any number of steps. */
export function withImplied(scopes: Iterable<string>, hierarchy: ScopeHierarchy = flat): ReadonlySet<string> {
  const all = new Set(scopes);
  for (const scope of all) {
    for (const implied of hierarchy.get(scope) ?? []) all.add(implied); // a Set goes on with what is added on the way
  }
  return all;
}
