import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import type {
  Backend,
  BackendEnd,
  BackendEvents,
  CloseOptions,
  OpenBackend,
  OpenOptions,
  RequestIds,
} from './backend.ts';

/** Wraps the opener of a server's backends, to see their messages or to trace them. */
export type DecorateBackends = (server: string, open: OpenBackend) => OpenBackend;

/** Joins decorators; undefined ones are left out. The first one is nearest to the server. */
export const decorateBackends =
  (decorators: readonly (DecorateBackends | undefined)[]): DecorateBackends =>
  (server, open) =>
    decorators.reduce((inner, decorate) => decorate?.(server, inner) ?? inner, open);

/**
 * Base of an observer between a backend and its user. It passes everything on unchanged, in both directions. A subclass
 * overrides what it observes.
 */
export abstract class BackendDecorator implements Backend, BackendEvents {
  protected readonly backend: Backend;
  protected readonly events: BackendEvents;

  /** Opens the backend. By the contract of `BackendEvents`, no event comes before the constructor has ended. */
  constructor(open: OpenBackend, events: BackendEvents, options: OpenOptions | undefined) {
    this.events = events;
    this.backend = open(this, options);
  }

  get pid(): number | undefined {
    return this.backend.pid;
  }

  send(message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    return this.backend.send(message, headers);
  }

  pause(): void {
    this.backend.pause();
  }

  resume(): void {
    this.backend.resume();
  }

  close(how?: CloseOptions): Promise<void> {
    return this.backend.close(how);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    this.events.onMessages(messages, relatedRequests);
  }

  onNoise(text: Buffer, more?: number): void {
    this.events.onNoise(text, more);
  }

  onUnanswered(...args: Parameters<BackendEvents['onUnanswered']>): void {
    this.events.onUnanswered(...args);
  }

  onState(state: string): void {
    this.events.onState?.(state);
  }

  onEnd(end: BackendEnd): void {
    this.events.onEnd(end);
  }
}
