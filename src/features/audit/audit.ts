// The audit log: one line for each call that has ended, without contents.

import type { AuditLog, AuditOptions } from '../../app/features/telemetry.ts';
import type { CallOutcome, EndedCall } from '../../core/call/call-events.ts';
import { type CallArguments, maxArgumentBytes } from '../../core/call/call-events.ts';
import { FloodLimiter } from '../../core/ops/flood-limiter.ts';
import { LineFile, type LineTarget } from '../../core/ops/line-file.ts';
import type { TaskEvent } from '../../core/ops/server-events.ts';
import { parseBounded } from '../../core/protocol/json.ts';
import type { Principal } from '../../core/protocol/principal.ts';
import { matchesGlob } from '../../core/util/glob.ts';
import { isObject } from '../../core/util/is-object.ts';
import { Chain, continueChain } from './chain.ts';

/** Stands for a value that an option hides. */
const hidden = '(hidden)';

/**
 * Returns the fields of an audit record for the arguments of a call: the arguments without hidden values, or their size
 * if they are too long.
 * @param hide patterns of names
 */
function argumentFields({ bytes, text }: CallArguments, hide: readonly string[]): object {
  if (text === undefined) return { argumentBytes: bytes };
  const given = parseBounded(text, maxArgumentBytes);
  return { arguments: hide.length === 0 ? given : withoutHidden(given, hide) };
}

function withoutHidden(value: unknown, hide: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((each) => withoutHidden(each, hide));
  if (!isObject(value)) return value;
  const isHidden = (name: string): boolean => hide.some((pattern) => matchesGlob(name, pattern));
  // `fromEntries` defines each name, even `__proto__`, which a peer may choose.
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, isHidden(name) ? hidden : withoutHidden(each, hide)]),
  );
}

/**
 * Writes a line of JSON for each call that has ended: who called what, and the outcome, without contents
 * (docs/decisions/0042). No call waits for its line; `LineFile` handles lines that cannot be written.
 * @throws an error for the operator if the file cannot be opened
 */
export function createAudit(options: AuditOptions): AuditLog {
  const { target, send, isChained, hiddenArguments, recordsArguments, instance, logger } = options;
  const stamp = (): object => ({ time: new Date().toISOString(), instance });
  const chain = isChained ? openChain(target) : undefined;
  const file =
    target === undefined
      ? undefined
      : openFile({
          target: target === 'stdout' ? 1 : target === 'stderr' ? 2 : target,
          onStuck: (cause) =>
            logger.error(
              { detail: (cause as Error).message },
              'cannot write audit lines; requests continue, and lines are buffered while there is room',
            ),
          onUnstuck: (lost) => logger.warn({ lost }, 'audit lines are written again'),
          gapLine: (lost) => JSON.stringify({ ...stamp(), lost }),
          seal: chain?.seal,
        });
  const record = (fields: object): void => {
    const line = JSON.stringify({ ...stamp(), ...fields });
    const written = file === undefined ? chain?.seal(line) : file.write(line);
    send?.(written ?? line);
  };
  const write = (call: EndedCall, leftOut = 0): void => {
    const { args, origin, name = '' } = call;
    const given = args && recordsArguments(origin.server, name) && argumentFields(args, hiddenArguments(origin.server));
    record({ ...callFields(call), ...given, ...(leftOut > 0 && { leftOut }) });
  };
  const unauthenticatedFaults = new FloodLimiter<EndedCall>(write);
  return {
    receive(event) {
      if (event.type === 'task' && event.what !== 'created') record(taskFields(event));
      if (event.type !== 'call-ended') return;
      const { origin, outcome } = event;
      // Unauthenticated requests are unlimited in number, so they share lines. Metrics count all of them.
      if (origin.principal === undefined && outcome.kind === 'fault')
        unauthenticatedFaults.report(outcome.reason, event);
      else write(event);
    },
    reopen() {
      try {
        file?.reopen();
        // A new file that says which line it continues is never empty, so the next start finds the end of the chain.
        if (chain !== undefined && file !== undefined) record({ chain: 'continued' });
      } catch (cause) {
        logger.error({ detail: (cause as Error).message }, 'cannot reopen the audit file; the old file stays in use');
      }
    },
    async close() {
      unauthenticatedFaults.flush();
      const lost = await file?.close();
      if (lost !== undefined && lost > 0)
        logger.error({ lost }, 'audit lines were lost because they could not be written');
    },
  };
}

function openChain(target: string | undefined): Chain {
  if (target === undefined || target === 'stdout' || target === 'stderr') return new Chain(null);
  try {
    return continueChain(target);
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`The chain of the audit file cannot be continued: ${message}. Correct --observe.audit.`, { cause });
  }
}

function openFile(options: ConstructorParameters<typeof LineFile>[0] & { readonly target: LineTarget }): LineFile {
  try {
    return new LineFile(options);
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`The audit file cannot be opened: ${message}. Correct --observe.audit.`, { cause });
  }
}

/** Unknown fields are undefined, so JSON omits them. */
function callFields({ origin, method, name, outcome, durationMs, bytesIn, bytesOut, requestId }: EndedCall): object {
  const { server, era, principal, session } = origin;
  const call = { server, era, principal: principalFields(principal), session, method, name, ...outcomeFields(outcome) };
  return { ...call, durationMs: Math.round(durationMs), bytesIn, bytesOut, requestId };
}

/** The end of a call that has become a task. The call itself has a line for the answer that named the task. */
function taskFields({ server, principal, tool, what, reason, durationMs }: TaskEvent): object {
  const call = { server, era: 'modern', principal: principalFields(principal), method: 'tools/call', name: tool };
  return { ...call, outcome: 'task', task: what, reason, durationMs };
}

/** Returns the principal without the digest of its credentials for a server; undefined without authentication. */
function principalFields(principal: Principal | undefined): Partial<Principal> | undefined {
  if (principal === undefined) return undefined;
  const { issuer, subject, client } = principal;
  const entries = Object.entries({ issuer, subject, client }).filter(([, value]) => value !== '');
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function outcomeFields(outcome: CallOutcome): object {
  const { kind, ...why } = outcome;
  return { outcome: kind, ...why };
}
