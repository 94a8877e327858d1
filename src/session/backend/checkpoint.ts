import type { EventDelivery } from '../events/delivery.ts';
import type { ClientState } from '../record/client-state.ts';
import type { BackendSupervisor } from './supervisor.ts';

/** What is needed to keep the place of a session's backend. */
export interface CheckpointKeeperOptions {
  /** Has the place. */
  readonly client: ClientState;
  outbound(): Pick<EventDelivery, 'mark'>;
  upstream(): Pick<BackendSupervisor, 'incarnation'>;
  /** The place is another one. */
  onClientChanged(): void;
}

/** Keeps where a backend stands with which another owner can go on (docs/design.md, D5). */
export class CheckpointKeeper {
  readonly #options: CheckpointKeeperOptions;

  constructor(options: CheckpointKeeperOptions) {
    this.#options = options;
  }

  /** Where the backend stands now: the record says so once the log has what came before. */
  note(state: string): void {
    const { client, outbound, upstream, onClientChanged } = this.#options;
    const { incarnation } = upstream();
    outbound().mark((at) => {
      if (incarnation !== upstream().incarnation) return; // another backend has taken its place
      client.backend = { state, at, isFirst: incarnation === '' };
      onClientChanged();
    });
  }

  /** The backend is no more. */
  forget(): void {
    const { client, onClientChanged } = this.#options;
    if (client.backend === undefined) return;
    client.backend = undefined;
    onClientChanged();
  }
}
