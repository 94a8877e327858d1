/** The methods of an interface with their results in place of promises. They have taken effect when they return. */
export type Immediate<T> = {
  readonly [M in keyof T]: T[M] extends (...args: infer A) => Promise<infer R> ? (...args: A) => R : T[M];
};

/** Offers immediate methods as an interface with promises. What a method throws becomes a rejection. */
export function withPromises<T extends object>(methods: Immediate<T>): T {
  const wrapped = Object.entries<(...args: unknown[]) => unknown>(methods as never).map(([name, method]) => [
    name,
    async (...args: unknown[]) => method(...args),
  ]);
  return Object.fromEntries(wrapped) as T;
}
