import type { Logger } from 'pino';

/** What can be done from the page. */
export interface StatusActionsOptions {
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
export class StatusActions {
  readonly #options: StatusActionsOptions;
  #isDraining = false;

  constructor(options: StatusActionsOptions) {
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
          ? done(`Session ${session} is ended.`)
          : { isDone: false, said: 'There is no such session any more.' };
      }
      case 'restart-server': {
        if (typeof server !== 'string') return unreadable;
        const count = restartServer(server);
        if (count === undefined) return { isDone: false, said: 'There is no such server.' };
        return done(
          count === 0
            ? `${server} has no backend now; the next one is started anew.`
            : `Backends of ${server} that are started again: ${count}.`,
        );
      }
      case 'drain':
        if (this.#isDraining) return { isDone: true, said: 'It is draining already.' };
        this.#isDraining = true;
        drain();
        return done('This instance takes no new sessions, and ends when its calls have ended.');
      default:
        return { isDone: false, said: 'There is no such action.' };
    }
  }
}

const unreadable: ActionOutcome = { isDone: false, said: 'The request does not say what it is for.' };
