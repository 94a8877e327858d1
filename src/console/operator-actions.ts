import type { Logger } from 'pino';

/** What can be done from the page. */
export interface OperatorActionsOptions {
  readonly logger: Logger;
  /** Ends a session, by its short name. False if there is none. */
  endSession(server: string, session: string): boolean;
  /** Starts all backends of a server anew. Returns how many there were; undefined if there is no such server. */
  restartServer(server: string): number | undefined;
  /** Ends this instance in order (P9). */
  drain(): void;
}

/** What came of an action, in a sentence for the person who asked for it. */
export interface ActionOutcome {
  readonly isDone: boolean;
  readonly said: string;
}

/** The actions, each by its name. Whatever is done is logged as done from the page. */
export class OperatorActions {
  readonly #options: OperatorActionsOptions;
  #isDraining = false;

  constructor(options: OperatorActionsOptions) {
    this.#options = options;
  }

  run(name: string, asked: Readonly<Record<string, unknown>>): ActionOutcome {
    const { logger, endSession, restartServer, drain } = this.#options;
    const { server, session } = asked;
    const done = (said: string): ActionOutcome => {
      logger.warn({ action: name, server, session }, 'action on the status page');
      return { isDone: true, said };
    };
    switch (name) {
      case 'end-session': {
        if (typeof server !== 'string' || typeof session !== 'string') return unreadable;
        return endSession(server, session)
          ? done(`Session ${session} has ended.`)
          : { isDone: false, said: 'The session no longer exists.' };
      }
      case 'restart-server': {
        if (typeof server !== 'string') return unreadable;
        const count = restartServer(server);
        if (count === undefined) return { isDone: false, said: 'The server does not exist.' };
        return done(
          count === 0
            ? `${server} has no running process; the next session starts a new one.`
            : `Restarting processes of ${server}: ${count}.`,
        );
      }
      case 'drain':
        if (this.#isDraining) return { isDone: true, said: 'This instance is already draining.' };
        this.#isDraining = true;
        drain();
        return done('This instance accepts no new sessions and exits when its requests have ended.');
      default:
        return { isDone: false, said: 'The action does not exist.' };
    }
  }
}

const unreadable: ActionOutcome = { isDone: false, said: 'The request does not name a session or a server.' };
