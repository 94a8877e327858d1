import { createHash, randomBytes } from 'node:crypto';
import type { ResultLimitOptions } from '../../app/features/calls.ts';

/** How long a text is kept. */
export const keptMs = 15 * 60_000;
/** A longer text is not kept (P8). */
const maxTextBytes = 8 * 1024 * 1024;
/** The texts of one user that are kept at the same time: a client can call a tool as often as it likes (P8). */
const maxUserBytes = 32 * 1024 * 1024;

const prefix = 'mcp-gangway://results/';

/** The owner of a text. All members are empty without authentication. */
export interface TextOwner {
  readonly issuer?: string | undefined;
  readonly subject?: string | undefined;
  readonly client?: string | undefined;
}

/** True for the URI of a text that the gateway has kept, or that somebody has made up. */
export const isKeptText = (uri: unknown): uri is string => typeof uri === 'string' && uri.startsWith(prefix);

/** The whole texts of results. All instances that share the store have them. */
export class KeptTexts {
  readonly #options: ResultLimitOptions;

  constructor(options: ResultLimitOptions) {
    this.#options = options;
  }

  /**
   * Keeps the inside of a JSON string. Returns its URI; undefined if the text is too long, if its owner has too many, or
   * while the store is away.
   */
  async keep(text: Buffer, owner: TextOwner): Promise<string | undefined> {
    if (text.length > maxTextBytes) return undefined;
    const { rates, values, onFailed } = this.#options;
    const user = digestOf(owner);
    const costMs = (text.length / maxUserBytes) * keptMs;
    const id = randomBytes(18).toString('base64url');
    try {
      // Each byte is paid off while it is kept, so the debt is what the user has now.
      if ((await rates.use(`result ${user}`, 0)) + costMs > keptMs) return undefined;
      await rates.use(`result ${user}`, costMs);
      await values.set('result', `${user} ${id}`, text, keptMs);
      return prefix + id;
    } catch (cause) {
      onFailed(cause);
      return undefined;
    }
  }

  /** Returns a text that this user owns; undefined if there is none. Rejects with `StoreUnavailable`. */
  find(uri: string, owner: TextOwner): Promise<Buffer | undefined> {
    return this.#options.values.get('result', `${digestOf(owner)} ${uri.slice(prefix.length)}`);
  }
}

const digestOf = ({ issuer = '', subject = '', client = '' }: TextOwner): string =>
  createHash('sha256')
    .update(JSON.stringify([issuer, subject, client]))
    .digest('base64url');
