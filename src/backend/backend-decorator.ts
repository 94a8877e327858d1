import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Backend, OpenBackend } from './backend.ts';

/** Wraps the opener of a server's backends, to see their messages or to trace them. */
export type DecorateBackends = (server: string, open: OpenBackend) => OpenBackend;

/** Joins decorators; undefined ones are left out. The first one is nearest to the server. */
export const decorateBackends =
  (decorators: readonly (DecorateBackends | undefined)[]): DecorateBackends =>
  (server, open) =>
    decorators.reduce((inner, decorate) => decorate?.(server, inner) ?? inner, open);

/** Base of a backend that observes messages on their way and passes everything else on unchanged. */
export abstract class BackendDecorator implements Backend {
  protected readonly backend: Backend;

  constructor(backend: Backend) {
    this.backend = backend;
  }

  get pid(): number | undefined {
    return this.backend.pid;
  }

  abstract send(message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']>;

  pause(): void {
    this.backend.pause();
  }

  resume(): void {
    this.backend.resume();
  }

  close(how?: { readonly isForGood?: boolean }): Promise<void> {
    return this.backend.close(how);
  }
}
