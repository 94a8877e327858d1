/**
 * A number that code obtains once and then adds to. It stands for an event where an object for each occurrence would
 * cost too much: for each message, or each batch of delivered events.
 */
export interface Meter {
  add(amount: number): void;
}

/** Finds the meter with this name and these label values. Callers keep the meter. */
export type FindMeter<Name extends string> = (name: Name, ...labels: string[]) => Meter;

/** A meter that nobody reads. */
export const unreadMeter: Meter = { add: () => undefined };

/** Joins the meters of several takers: each amount is added to all of them. */
export function meterIn<Name extends string>(takers: readonly FindMeter<Name>[]): FindMeter<Name> {
  const [only = () => unreadMeter, ...others] = takers;
  if (others.length === 0) return only;
  return (name, ...labels) => {
    const meters = takers.map((find) => find(name, ...labels));
    return {
      add(amount) {
        for (const meter of meters) meter.add(amount);
      },
    };
  };
}
