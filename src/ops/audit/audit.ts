import type { Logger } from 'pino';
import type { CallObserver, CallOutcome, EndedCall } from '../../call/call-report.ts';
import type { Principal } from '../../protocol/principal.ts';
import { FloodLimiter } from '../flood-limiter.ts';
import { LineFile, type LineTarget } from './line-file.ts';

/** What audit lines are written with. */
export interface AuditOptions {
  /** `stdout`, `stderr`, or the path of a file. */
  readonly target: string;
  /** Which of several gateways writes. */
  readonly instance: string;
  readonly logger: Logger;
}

/** The audit lines of a gateway. */
export interface Audit extends CallObserver {
  /** Opens the file anew, after it was moved away. */
  reopen(): void;
  /** Resolves when the lines are written, or cannot be. */
  close(): Promise<void>;
}

/**
 * A line of JSON for each call that has ended: who, what, how it ended; no content (docs/decisions/0038). Nobody waits for it:
 * what becomes of lines that cannot be written says `LineFile`. Throws an error for the operator if the file cannot be opened.
 */
export function createAudit({ target, instance, logger }: AuditOptions): Audit {
  const stamp = (): object => ({ time: new Date().toISOString(), instance });
  const file = openFile({
    target: target === 'stdout' ? 1 : target === 'stderr' ? 2 : target,
    onStuck: (cause) =>
      logger.error(
        { detail: (cause as Error).message },
        'cannot write audit lines; requests continue, and lines are buffered while there is room',
      ),
    onUnstuck: (lost) => logger.warn({ lost }, 'audit lines are written again'),
    gapLine: (lost) => JSON.stringify({ ...stamp(), lost }),
  });
  const write = (call: EndedCall, leftOut = 0): void =>
    file.write(JSON.stringify({ ...stamp(), ...lineOf(call), ...(leftOut > 0 && { leftOut }) }));
  const strangers = new FloodLimiter<EndedCall>(write);
  return {
    wantsNames: true,
    ended(call) {
      const { origin, outcome } = call;
      // Of those whom nobody knows there can be any number; metrics count them all.
      if (origin.principal === undefined && outcome.kind === 'fault') strangers.report(outcome.reason, call);
      else write(call);
    },
    refused: () => undefined, // its calls are told of
    reopen() {
      try {
        file.reopen();
      } catch (cause) {
        logger.error({ detail: (cause as Error).message }, 'cannot reopen the audit file; the old file stays in use');
      }
    },
    async close() {
      strangers.flush();
      const lost = await file.close();
      if (lost > 0) logger.error({ lost }, 'audit lines were lost because they could not be written');
    },
  };
}

function openFile(options: ConstructorParameters<typeof LineFile>[0] & { readonly target: LineTarget }): LineFile {
  try {
    return new LineFile(options);
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`The audit file cannot be opened: ${message}. Correct --audit.`, { cause });
  }
}

/** Fields that are not known are left out, as JSON has it. */
function lineOf({ origin, method, name, outcome, durationMs, bytesIn, bytesOut, requestId }: EndedCall): object {
  const { server, era, principal, session } = origin;
  const call = { server, era, principal: shown(principal), session, method, name, ...wordsOf(outcome) };
  return { ...call, durationMs: Math.round(durationMs), bytesIn, bytesOut, requestId };
}

/** Who it is, without the mark of their credentials for a server. Nobody, where the gateway does no authentication. */
function shown(principal: Principal | undefined): Partial<Principal> | undefined {
  if (principal === undefined) return undefined;
  const { issuer, subject, client } = principal;
  const entries = Object.entries({ issuer, subject, client }).filter(([, value]) => value !== '');
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function wordsOf(outcome: CallOutcome): object {
  const { kind, ...why } = outcome;
  return { outcome: kind, ...why };
}
