import type { EventDelivery } from '../events/delivery.ts';
import type { SessionContext } from '../session-context.ts';
import type { BackendSupervisor } from './supervisor.ts';

/** Keeps the checkpoint of a backend, with which another owner can resume the server's session (docs/design.md, D5). */
export class CheckpointKeeper {
  readonly #context: SessionContext;
  readonly #delivery: EventDelivery;
  readonly #supervisor: BackendSupervisor;

  constructor(context: SessionContext, delivery: EventDelivery, supervisor: BackendSupervisor) {
    this.#context = context;
    this.#delivery = delivery;
    this.#supervisor = supervisor;
  }

  /** Notes a new backend state. The record gets the state once the log has all earlier messages. */
  note(state: string): void {
    const { client, record } = this.#context;
    const { incarnation } = this.#supervisor;
    this.#delivery.mark((at) => {
      if (incarnation !== this.#supervisor.incarnation) return; // another backend has replaced it
      client.backend = { state, at, isFirst: incarnation === '' };
      record.amend();
    });
  }

  /** The backend has ended. */
  forget(): void {
    const { client, record } = this.#context;
    if (client.backend === undefined) return;
    client.backend = undefined;
    record.amend();
  }
}
