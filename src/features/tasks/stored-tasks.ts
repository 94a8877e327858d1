import { randomBytes } from 'node:crypto';
import type { TasksOptions } from '../../app/features/eras.ts';
import type { ChangeListener } from '../../core/store/shared/shared-data.ts';
import { formatTask, parseTask, type TaskFacts, type TaskRecord } from './task-record.ts';

const nothing = Buffer.alloc(0);
const endOf = (id: string): string => `${id} end`;
const answerOf = (id: string, key: string): string => `${id} answer ${key}`;
const requestOf = (id: string): string => `${id} request`;
const claimOf = (id: string, moves: number): string => `${id} owner ${moves}`;
const againOf = (id: string): string => `${id} again`;
const newsOf = (id: string): string => `task ${id}`;

/** True for a task that has not ended. */
export const isOpen = ({ status }: TaskFacts): boolean => status === 'working' || status === 'input_required';

/** How long what is stored of a task is kept from now, in milliseconds. */
export const leftMs = ({ createdAt, ttlMs }: TaskFacts): number => Math.max(1, createdAt + ttlMs - Date.now());

/**
 * What the store has of tasks: for each one its state, its request, the answers to its questions, who goes on with it, and
 * its end. Each stored state is announced. Every method rejects with `StoreUnavailable` while the store is away.
 */
export class StoredTasks {
  readonly #values: TasksOptions['values'];
  readonly #changes: TasksOptions['changes'];

  constructor({ values, changes }: Pick<TasksOptions, 'values' | 'changes'>) {
    this.#values = values;
    this.#changes = changes;
  }

  /** The end of a task, or else its newest state; undefined for no task. */
  async find(id: string): Promise<TaskRecord | undefined> {
    const [state, found] = await Promise.all([this.#get(id), this.#get(endOf(id))]);
    // The end may have been stored between the two, with a state that says so and has no result.
    const isEnded = state !== undefined && state.length > 0 && !isOpen(parseTask(state).facts);
    const end = found ?? (isEnded ? await this.#get(endOf(id)) : undefined);
    const stored = end ?? state;
    if (stored === undefined || stored.length === 0 || (isEnded && end === undefined)) return undefined;
    return parseTask(stored);
  }

  async hasEnded(id: string): Promise<boolean> {
    return (await this.#get(endOf(id))) !== undefined;
  }

  /** Stores a state. */
  async set(id: string, record: TaskRecord): Promise<void> {
    await this.#values.set('task', id, formatTask(record), leftMs(record.facts));
    await this.#announce(id);
  }

  /**
   * Stores an end for `ttlMs` milliseconds, if there is none. Resolves with the end that counts, and whether it is this
   * one.
   */
  async keepEnd(id: string, ended: TaskRecord, ttlMs: number): Promise<{ record: TaskRecord; isFirst: boolean }> {
    // Tells two ends of one task apart.
    const mark = randomBytes(9).toString('base64url');
    const candidate = formatTask({ ...ended, facts: { ...ended.facts, mark } });
    const kept = await this.#values.keep('task', endOf(id), candidate, ttlMs);
    return { record: parseTask(kept), isFirst: kept.equals(candidate) };
  }

  /** A state that outlives the end would look like a lost task, so it says that the task has ended. */
  async noteEnd(id: string, { facts }: TaskRecord, ttlMs: number): Promise<void> {
    await this.#values.set('task', id, formatTask({ facts, text: nothing }), ttlMs);
    await this.#announce(id);
  }

  /** Removes a task that nobody has been told of. */
  async discard(id: string): Promise<void> {
    await this.#values.set('task', id, nothing, 1);
  }

  async setRequest(id: string, text: Buffer, ttlMs: number): Promise<void> {
    await this.#values.set('task', requestOf(id), text, ttlMs);
  }

  request(id: string): Promise<Buffer | undefined> {
    return this.#get(requestOf(id));
  }

  /** Stores an answer to a question. Resolves with the first one. */
  keepAnswer(id: string, key: string, text: Buffer, ttlMs: number): Promise<Buffer> {
    return this.#values.keep('task', answerOf(id, key), text, ttlMs);
  }

  /** The answers to these questions, as far as there are any. */
  async answers(id: string, keys: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
    const found = await Promise.all(keys.map((key) => this.#get(answerOf(id, key))));
    const pairs = keys.map((key, index) => [key, found[index]] as const);
    return new Map(pairs.filter((pair): pair is [string, Buffer] => pair[1] !== undefined));
  }

  /**
   * Claims a move of a task for an instance. Resolves with undefined if it got the claim, and with the instance that has
   * it otherwise.
   */
  async claim(id: string, move: number, instance: string, ttlMs: number): Promise<string | undefined> {
    const claim = `${randomBytes(9).toString('base64url')} ${instance}`;
    const kept = (await this.#values.keep('task', claimOf(id, move), Buffer.from(claim), ttlMs)).toString();
    return kept === claim ? undefined : kept.slice(kept.indexOf(' ') + 1);
  }

  /** Claims that the call of a task is sent again. True once for each task, and for each repetition with the same mark. */
  async claimRerun(id: string, mark: Buffer, ttlMs: number): Promise<boolean> {
    return (await this.#values.keep('task', againOf(id), mark, ttlMs)).equals(mark);
  }

  /** Listens to what becomes of a task. Resolves with the function that stops it. */
  watch(id: string, listener: ChangeListener): Promise<() => void> {
    return this.#changes.subscribe(newsOf(id), listener);
  }

  #announce(id: string): Promise<void> {
    return this.#changes.publish(newsOf(id), nothing);
  }

  #get(name: string): Promise<Buffer | undefined> {
    return this.#values.get('task', name);
  }
}
