// src/core/util/telemetry: how any part of the gateway reports what happens, without knowing who reads it.
import { reportFault } from '../boundary.ts';

/** Reports an event. Who emits knows no sink, and no event carries an id that gives access (P12). */
export type Emit<Event> = (event: Event) => void;

/** The event of one type. */
export type EventOf<Event extends { readonly type: string }, Type extends Event['type']> = Extract<
  Event,
  { readonly type: Type }
>;

/**
 * Joins sinks, such as a log, metrics and the status page: each event goes to all of them, in this order. A sink that
 * throws harms neither the emitter nor the other sinks; its fault is reported. Undefined sinks are left out.
 */
export function emitTo<Event>(sinks: readonly (Emit<Event> | undefined)[]): Emit<Event> {
  const present = sinks.filter((sink) => sink !== undefined);
  return (event) => {
    for (const sink of present) {
      try {
        sink(event);
      } catch (cause) {
        reportFault('background', cause);
      }
    }
  };
}
