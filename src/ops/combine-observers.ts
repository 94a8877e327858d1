type ObserverMethods = Record<string, ((...args: unknown[]) => unknown) | undefined>;

/** Combines two observers: each event goes to the first one, then to the second one if that handles it. */
export function combineObservers<T extends object>(first: T, second: Partial<T>): T {
  const combined = { ...first } as ObserverMethods;
  for (const [name, callSecond] of Object.entries(second as ObserverMethods)) {
    const callFirst = combined[name];
    combined[name] =
      callFirst === undefined || callSecond === undefined
        ? callSecond
        : (...args) => {
            callFirst(...args);
            callSecond(...args);
          };
  }
  return combined as T;
}
