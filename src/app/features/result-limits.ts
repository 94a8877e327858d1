import type { CreateInterceptor } from '../../core/backend/link/link.ts';
import type { Rates, Values } from '../../core/store/shared/shared-data.ts';

/** Long texts in the results of tools (docs/result-limits.md). */
export interface ResultLimitsFeature {
  /** The interceptor that cuts long texts and answers requests for the whole ones, of each backend that clients use. */
  limit(options: ResultLimitOptions): CreateInterceptor;
}

/** What the limit of a server needs. */
export interface ResultLimitOptions {
  /** The longest text in bytes; undefined for a view, whose servers cut their texts. */
  readonly maxBytes: number | undefined;
  readonly values: Pick<Values, 'get' | 'set'>;
  readonly rates: Rates;
  /** The store could not keep a text. */
  onFailed(cause: unknown): void;
}
