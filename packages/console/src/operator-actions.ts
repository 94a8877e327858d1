/** Where actions are logged. */
export interface ActionLog {
  warn(details: object, message: string): void;
}

/** The operations behind the actions. */
export interface OperatorActionsOptions {
  readonly logger: ActionLog;
  /** Ends a session, by its short name. Returns false if there is none. */
  endSession(server: string, session: string): boolean;
  /** Cancels a task, by its short name. False if no instance is known to run it. */
  cancelTask(task: string): boolean;
  /** Restarts all backends of a server. Returns their number; undefined if there is no such server. */
  restartServer(server: string): number | undefined;
  /** Drains and ends this instance (P9). */
  drain(): void;
}

/** The outcome of an action, with a sentence for the operator. */
export interface ActionOutcome {
  readonly isDone: boolean;
  readonly message: string;
}

/** Runs the actions of the page, by name. Every action that succeeds is logged as an action on the status page. */
export class OperatorActions {
  readonly #options: OperatorActionsOptions;
  #isDraining = false;

  constructor(options: OperatorActionsOptions) {
    this.#options = options;
  }

  run(name: string, parameters: Readonly<Record<string, unknown>>): ActionOutcome {
    const { logger, endSession, cancelTask, restartServer, drain } = this.#options;
    const { server, session, task } = parameters;
    const succeed = (message: string): ActionOutcome => {
      logger.warn({ action: name, server, session, task }, 'action on the status page');
      return { isDone: true, message };
    };
    switch (name) {
      case 'end-session': {
        if (typeof server !== 'string' || typeof session !== 'string') return invalidRequest;
        return endSession(server, session)
          ? succeed(`Session ${session} has ended.`)
          : { isDone: false, message: 'The session no longer exists.' };
      }
      case 'cancel-task': {
        if (typeof task !== 'string') return invalidRequest;
        return cancelTask(task)
          ? succeed(`Task ${task} is cancelled.`)
          : { isDone: false, message: 'The task has ended.' };
      }
      case 'restart-server': {
        if (typeof server !== 'string') return invalidRequest;
        const count = restartServer(server);
        if (count === undefined) return { isDone: false, message: 'The server does not exist.' };
        return succeed(
          count === 0
            ? `${server} has no running process; the next session starts a new one.`
            : `Restarting processes of ${server}: ${count}.`,
        );
      }
      case 'drain':
        if (this.#isDraining) return { isDone: true, message: 'This instance is already draining.' };
        this.#isDraining = true;
        drain();
        return succeed('This instance accepts no new sessions and exits when its requests have ended.');
      default:
        return { isDone: false, message: 'The action does not exist.' };
    }
  }
}

const invalidRequest: ActionOutcome = {
  isDone: false,
  message: 'The request does not name a session, a task or a server.',
};
