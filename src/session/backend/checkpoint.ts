import type { EventDelivery } from '../events/delivery.ts';
import type { ClientState } from '../record/client-state.ts';
import type { BackendSupervisor } from './supervisor.ts';

/** Options of `CheckpointKeeper`. */
export interface CheckpointKeeperOptions {
  /** Stores the checkpoint. */
  readonly client: ClientState;
  delivery(): Pick<EventDelivery, 'mark'>;
  supervisor(): Pick<BackendSupervisor, 'incarnation'>;
  /** The checkpoint has changed. */
  onClientChanged(): void;
}

/** Keeps the checkpoint of a backend, with which another owner can resume the server's session (docs/design.md, D5). */
export class CheckpointKeeper {
  readonly #options: CheckpointKeeperOptions;

  constructor(options: CheckpointKeeperOptions) {
    this.#options = options;
  }

  /** Notes a new backend state. The record gets the state once the log has all earlier messages. */
  note(state: string): void {
    const { client, delivery, supervisor, onClientChanged } = this.#options;
    const { incarnation } = supervisor();
    delivery().mark((at) => {
      if (incarnation !== supervisor().incarnation) return; // another backend has replaced it
      client.backend = { state, at, isFirst: incarnation === '' };
      onClientChanged();
    });
  }

  /** The backend has ended. */
  forget(): void {
    const { client, onClientChanged } = this.#options;
    if (client.backend === undefined) return;
    client.backend = undefined;
    onClientChanged();
  }
}
