import type { ProcessHolder } from '../../backend/backend.ts';
import type { Idleness } from '../idleness.ts';
import type { SessionPipeline } from '../pipeline.ts';
import type { SessionContext } from '../session-context.ts';

/** A session as a user of processes that sessions of the same client use one after another. */
export class SessionProcessHolder implements ProcessHolder {
  readonly #context: SessionContext;
  readonly #pipeline: SessionPipeline;
  readonly #idleness: Idleness;

  constructor(context: SessionContext, pipeline: SessionPipeline, idleness: Idleness) {
    this.#context = context;
    this.#pipeline = pipeline;
    this.#idleness = idleness;
  }

  get isOver(): boolean {
    return this.#context.endReason !== undefined;
  }

  get releasableInMs(): number {
    return this.#context.handshake === undefined ? Number.POSITIVE_INFINITY : this.#idleness.releasableInMs;
  }

  get quietMs(): number {
    return this.#idleness.quietMs;
  }

  get use(): ProcessHolder['use'] {
    return this.#context.handshake === undefined ? 'unknown' : this.#idleness.use;
  }

  onStart(): void {
    this.#context.parts.permit.started();
  }

  /**
   * The session hibernates without its process. It ends if its server must not be restored, because a later request
   * must then not reach another process.
   */
  release(): void {
    this.#pipeline.supervisor.hibernate(true);
    const { parts, name } = this.#context;
    if (parts.server.onBackendExit === 'end') this.#context.end('superseded');
    else parts.telemetry.emit({ type: 'session-hibernated', name, reason: 'reused' });
  }

  expire(): void {
    this.#context.end('superseded');
  }
}
