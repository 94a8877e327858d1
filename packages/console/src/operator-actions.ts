import type { ConsoleHost, ServerCheck } from './host.ts';

/** Where actions are logged. */
export interface ActionLog {
  warn(details: object, message: string): void;
}

/** The operations behind the actions. */
export interface OperatorActionsOptions {
  readonly host: Pick<ConsoleHost, 'redact'>;
  readonly logger: ActionLog;
  /** Ends a session, by its short name. Returns false if there is none. */
  endSession(server: string, session: string): boolean;
  /** Cancels a task, by its short name. False if no instance is known to run it. */
  cancelTask(task: string): boolean;
  /** Restarts all backends of a server. Returns their number; undefined if there is no such server. */
  restartServer(server: string): number | undefined;
  /** Checks a server. Undefined if there is no such server. */
  checkServer(server: string): Promise<ServerCheck | undefined>;
  /** Drains and ends this instance (P9). */
  drain(): void;
}

/** The outcome of an action, with a sentence for the operator. */
export interface ActionOutcome {
  readonly isDone: boolean;
  readonly message: string;
  /** What a check has found. */
  readonly check?: ServerCheck;
}

/** The number of checks at once (P8): each starts a process. */
const maxChecks = 4;

/** Runs the actions of the page, by name. Every action that succeeds is logged as an action on the status page. */
export class OperatorActions {
  readonly #options: OperatorActionsOptions;
  /** The checks that run, by server: who asks for one that runs gets its result. */
  readonly #checks = new Map<string, Promise<ServerCheck | undefined>>();
  #isDraining = false;

  constructor(options: OperatorActionsOptions) {
    this.#options = options;
  }

  run(name: string, parameters: Readonly<Record<string, unknown>>): ActionOutcome | Promise<ActionOutcome> {
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
      case 'check-server':
        if (typeof server !== 'string') return invalidRequest;
        if (this.#checks.size >= maxChecks && !this.#checks.has(server))
          return { isDone: false, message: 'Other checks are under way. Try again when they have ended.' };
        return this.#check(server).then((check) => {
          if (check === undefined) return { isDone: false, message: 'The server does not exist.' };
          return { ...succeed(`${server} was checked.`), check };
        });
      case 'drain':
        if (this.#isDraining) return { isDone: true, message: 'This instance is already draining.' };
        this.#isDraining = true;
        drain();
        return succeed('This instance accepts no new sessions and exits when its requests have ended.');
      default:
        return { isDone: false, message: 'The action does not exist.' };
    }
  }

  /** Checks a server. What it wrote is shown without likely credentials. */
  async #check(server: string): Promise<ServerCheck | undefined> {
    const { host, checkServer } = this.#options;
    const running = this.#checks.get(server) ?? checkServer(server).finally(() => this.#checks.delete(server));
    this.#checks.set(server, running);
    const found = await running;
    const results = found?.results.map(({ kind, text, details }) => ({
      kind,
      text: host.redact(text),
      details: details.map((line) => host.redact(line)),
    }));
    return found && results && { isFine: found.isFine, results };
  }
}

const invalidRequest: ActionOutcome = {
  isDone: false,
  message: 'The request does not name a session, a task or a server.',
};
