import type { Changes } from '../host.ts';
import { SharedTopic } from '../snapshot/shared-topic.ts';
import { type OwnSessions, readAnswer, readQuestion, type SessionsAnswer, writeAnswer } from './session-answers.ts';
import type { SessionView } from './session-view.ts';

/** The settings of the sessions of other instances. */
export interface OtherSessionsOptions {
  /** The name of this instance. */
  readonly name: string;
  /** The change announcements between instances; undefined for a single instance. */
  readonly changes: Changes | undefined;
  /** Returns the newest sessions of this instance that match a search. */
  own(search: string, limit: number): OwnSessions;
  /** Receives failures of the store. */
  onFailed(cause: unknown): void;
}

/** The sessions of another instance, as it last reported them. */
export interface ReportedSessions {
  readonly instance: string;
  /** The upper limit for the age of the report, in milliseconds: the time since the question. */
  readonly ageMs: number;
  /** How many of its sessions match; `sessions` has the newest of them. */
  readonly found: number;
  readonly total: number;
  readonly sessions: readonly SessionView[];
}

const topic = 'status-sessions';

/** How often a question is asked while a page waits for its answers. */
const questionIntervalMs = 3_000;

/** A report of this age is not shown. */
const expiryMs = 10_000;

/** The limit for the sessions in one report (P8). A person who looks for an older session narrows the search. */
const maxReported = 100;

/** The limits for remembered searches and for reports on each (P8). Everything with access to the store can report. */
const maxSearches = 20;
const maxReporters = 100;

/** How many questions an instance answers in a second (P8). Each answer reaches all instances. */
const maxAnswersPerSecond = 10;

/** A search for sessions, and what the other instances reported. */
interface Search {
  askedAt: number;
  usedAt: number;
  /** The times of the last questions, by their number. A late report has the age of its question. */
  readonly questions: Map<number, number>;
  readonly reports: Map<string, { readonly askedAt: number; readonly answer: SessionsAnswer }>;
}

/**
 * Finds sessions of the other instances that share the store. Nothing is stored: while a page shows sessions, its
 * instance asks every few seconds, and each live instance reports its newest matching sessions.
 */
export class OtherSessions {
  readonly #options: OtherSessionsOptions;
  readonly #searches = new Map<string, Search>();
  #asked = 0;
  #answered = { second: 0, count: 0 };
  readonly #topic: SharedTopic;

  constructor(options: OtherSessionsOptions) {
    this.#options = options;
    const { changes, onFailed } = options;
    this.#topic = new SharedTopic({ changes, topic, onFailed, onMessage: (text) => this.#onMessage(text) });
  }

  /** Returns the last reports on a search, sorted by instance. Asks again if the last question is old enough. */
  find(search: string): readonly ReportedSessions[] {
    if (this.#options.changes === undefined) return [];
    const now = performance.now();
    this.#forgetUnused(now);
    const entry = this.#searchFor(search);
    if (entry === undefined) return [];
    entry.usedAt = now;
    if (now - entry.askedAt >= questionIntervalMs) this.#ask(search, entry, now);
    for (const [name, { askedAt }] of entry.reports) if (now - askedAt > expiryMs) entry.reports.delete(name);
    return Array.from(entry.reports.values(), ({ askedAt, answer: { from, ...answer } }) => ({
      ...answer,
      instance: from,
      ageMs: Math.round(now - askedAt),
    })).sort((a, b) => (a.instance < b.instance ? -1 : 1));
  }

  close(): Promise<void> {
    return this.#topic.close();
  }

  #searchFor(search: string): Search | undefined {
    const known = this.#searches.get(search);
    if (known !== undefined || this.#searches.size >= maxSearches) return known;
    const never = Number.NEGATIVE_INFINITY;
    const created: Search = { askedAt: never, usedAt: never, questions: new Map(), reports: new Map() };
    this.#searches.set(search, created);
    return created;
  }

  #forgetUnused(now: number): void {
    for (const [search, { usedAt }] of this.#searches) if (now - usedAt > expiryMs) this.#searches.delete(search);
  }

  #ask(search: string, entry: Search, now: number): void {
    this.#topic.follow();
    this.#asked += 1;
    entry.askedAt = now;
    for (const [number, at] of entry.questions) if (now - at > expiryMs) entry.questions.delete(number);
    entry.questions.set(this.#asked, now);
    this.#topic.publish(Buffer.from(JSON.stringify({ asks: this.#options.name, question: this.#asked, search })));
  }

  #onMessage(text: Buffer): void {
    const { name, own } = this.#options;
    const question = readQuestion(text);
    if (question !== undefined) {
      if (question.asks === name || !this.#mayAnswer()) return;
      const answer = writeAnswer({ ...question, from: name }, own(question.search, maxReported));
      return this.#topic.publish(Buffer.from(answer));
    }
    const answer = readAnswer(text);
    if (answer !== undefined && answer.to === name) this.#record(answer);
  }

  #mayAnswer(): boolean {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#answered.second) this.#answered = { second, count: 0 };
    this.#answered.count += 1;
    return this.#answered.count <= maxAnswersPerSecond;
  }

  #record(answer: SessionsAnswer): void {
    for (const { questions, reports } of this.#searches.values()) {
      const askedAt = questions.get(answer.question);
      if (askedAt === undefined) continue;
      const isOld = askedAt < (reports.get(answer.from)?.askedAt ?? Number.NEGATIVE_INFINITY);
      if (!isOld && (reports.size < maxReporters || reports.has(answer.from)))
        reports.set(answer.from, { askedAt, answer });
    }
  }
}
