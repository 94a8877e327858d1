import type { Changes } from '../../store/shared/changes.ts';

/** What an instance says of itself to those that it shares its sessions with. */
export interface InstanceSummary {
  readonly name: string;
  readonly version: string;
  readonly readiness: string;
  readonly sessions: number;
  readonly streams: number;
}

/** What the instances of a cluster need of this one. */
export interface KnownInstancesOptions {
  /** What instances tell each other; undefined if there is one alone. */
  readonly changes: Changes | undefined;
  summary(): InstanceSummary;
  /** The store did not do what it was asked. */
  onFailed(cause: unknown): void;
}

/** Under this topic instances ask each other how they are, and answer. */
const topic = 'status';

/** How often it is asked, while somebody looks. */
const askMs = 3_000;

/** Who has not said anything for so long is not shown. */
const forgetMs = 10_000;

/** Every instance of every page asks; all are answered at once by what is said so often at most. */
const answerMs = 1_000;

/** So many are known (P8): whoever can write to the store could say anything. */
const maxKnown = 1_000;

const question = Buffer.from('?');

/**
 * The instances that share the store, as they say themselves. Nobody keeps a list: while somebody looks at a page, its
 * instance asks, and all that live answer.
 */
export class KnownInstances {
  readonly #options: KnownInstancesOptions;
  readonly #others = new Map<string, { readonly summary: InstanceSummary; readonly at: number }>();
  #answeredAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  #stop: Promise<(() => void) | undefined> | undefined;

  constructor(options: KnownInstancesOptions) {
    this.#options = options;
    this.#follow();
  }

  /** All that are known, this one first. Asks the others, if it is time to. */
  list(): readonly (InstanceSummary & { readonly isThis: boolean })[] {
    const now = performance.now();
    this.#ask(now);
    for (const [name, { at }] of this.#others) if (now - at > forgetMs) this.#others.delete(name);
    const others = Array.from(this.#others.values(), ({ summary }) => ({ ...summary, isThis: false }));
    return [{ ...this.#options.summary(), isThis: true }, ...others.sort((a, b) => (a.name < b.name ? -1 : 1))];
  }

  async close(): Promise<void> {
    (await this.#stop)?.();
  }

  #follow(): void {
    const { changes, onFailed } = this.#options;
    const listener = { onChange: (text: Buffer) => this.#hear(text), onMissed: () => undefined };
    this.#stop = changes?.subscribe(topic, listener).catch((cause: unknown) => {
      onFailed(cause);
      this.#stop = undefined; // the next who looks tries again
      return undefined;
    });
  }

  #ask(now: number): void {
    if (this.#stop === undefined) this.#follow();
    if (now - this.#askedAt < askMs) return;
    this.#askedAt = now;
    this.#say(question);
  }

  #hear(text: Buffer): void {
    if (!text.equals(question)) return this.#note(text);
    const now = performance.now();
    if (now - this.#answeredAt < answerMs) return;
    this.#answeredAt = now;
    this.#say(Buffer.from(JSON.stringify(this.#options.summary())));
  }

  #note(text: Buffer): void {
    const summary = read(text);
    if (summary === undefined || summary.name === this.#options.summary().name) return;
    if (this.#others.size < maxKnown || this.#others.has(summary.name))
      this.#others.set(summary.name, { summary, at: performance.now() });
  }

  #say(text: Buffer): void {
    this.#options.changes?.publish(topic, text).catch(this.#options.onFailed);
  }
}

/** Another version of the gateway may say other things; undefined for what is not understood. */
function read(text: Buffer): InstanceSummary | undefined {
  try {
    const said = JSON.parse(text.toString()) as Partial<InstanceSummary> | null;
    const { name, version, readiness, sessions, streams } = said ?? {};
    const isSummary = typeof name === 'string' && typeof version === 'string' && typeof readiness === 'string';
    if (!isSummary || typeof sessions !== 'number' || typeof streams !== 'number') return undefined;
    return { name, version, readiness, sessions, streams };
  } catch {
    return undefined; // expected: see above
  }
}
