import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Backend } from './backend.ts';

/** Base of a backend that observes messages on their way and passes everything else on unchanged. */
export abstract class BackendDecorator implements Backend {
  protected readonly backend: Backend;

  constructor(backend: Backend) {
    this.backend = backend;
  }

  get pid(): number | undefined {
    return this.backend.pid;
  }

  abstract send(message: Uint8Array, headers?: ForwardedHeaders): ReturnType<Backend['send']>;

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
