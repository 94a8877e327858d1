import type { ProcessHolder } from '../../backend/backend.ts';
import type { Idleness } from '../idleness.ts';
import type { SessionPipeline } from '../pipeline.ts';
import type { SessionContext } from '../session-context.ts';

/** A session as a user of processes that other sessions of the same client may use, too. */
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

  get isLeft(): boolean {
    return this.#context.handshake !== undefined && this.#idleness.isLeft;
  }

  get quietMs(): number {
    return this.#idleness.quietMs;
  }

  get answered(): number {
    return this.#context.answeredCalls;
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
