type Told = Record<string, ((...what: unknown[]) => unknown) | undefined>;

/** An observer that tells the first one of everything, and then, of what it wants to know, the second one. */
export function combineObservers<T extends object>(first: T, second: Partial<T>): T {
  const told = { ...first } as Told;
  for (const [name, tellSecond] of Object.entries(second as Told)) {
    const tellFirst = told[name];
    told[name] =
      tellFirst === undefined || tellSecond === undefined
        ? tellSecond
        : (...what) => {
            tellFirst(...what);
            tellSecond(...what);
          };
  }
  return told as T;
}
