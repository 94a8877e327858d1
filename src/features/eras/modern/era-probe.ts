import type { EraProbe, ProbeOutcome } from '../../../app/features/eras.ts';
import type { BackendEnd, OpenBackend } from '../../../core/backend/backend.ts';
import { McpClient } from '../../../core/backend/mcp-client.ts';
import { isResponse, type NoResponse } from '../../../core/backend/own-requests.ts';
import type { KeepProbed } from '../../../core/backend/starting/probed-backend.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { readDiscovery } from '../../../core/protocol/modern/discovery.ts';
import { detach } from '../../../core/util/boundary.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';

export interface ProbeOptions {
  /** Opens a process or a connection that serves nobody yet. */
  readonly open: OpenBackend;
  readonly keepProbed?: KeepProbed | undefined;
  readonly version: string;
  /** How long the server has to answer. */
  readonly timeoutMs: number;
  /** How long the server may be silent before a second process shows whether it answers `initialize`. */
  readonly witnessAfterMs?: number;
  /** True if a process has just ended on `initialize` alone: no second process is started to test that. */
  readonly hasEnded?: boolean;
  /** The headers of the client's request that needs the era. */
  readonly headers?: ForwardedHeaders;
  /** Reports text of the server that is no message. */
  readonly onNoise?: (line: Buffer) => void;
  /** Reports the end of a process that was closed because it did not answer in time. */
  readonly onLateEnd?: (end: BackendEnd) => void;
}

/** How long `server/discover` may still be answered after `initialize` was, although it was sent first. */
export const lateDiscoveryMs = 1_000;

/**
 * A server that has answered nothing for so long may ignore `server/discover`: a second process gets `initialize`. The
 * first one must not get it, or a server that speaks both eras would leave the modern one. This is longer than most
 * servers need to start, since a second start slows the first one down. A silent server should still answer its first
 * client within 6 s; clients of the Python SDK wait 10 s.
 */
const defaultWitnessAfterMs = 4_000;

/**
 * Finds out the era of a server (2026-07-28, basic/transports/stdio, "Backward Compatibility"). The probe has a process
 * that serves nobody yet, since a legacy server may end on a request before `initialize`. It gets `server/discover`, and
 * serves the first client afterwards, so that a server starts once (docs/decisions/0025). If it stays silent, a second
 * process gets `initialize`: the answer shows a legacy server that ignores `server/discover`.
 *
 * A process that ends proves nothing: it may have crashed. One more process is started and gets `initialize` alone. A
 * result means the legacy era. After a refusal that process gets `server/discover` too. If the second process ends as
 * well, the server does not start. With `hasEnded` the second process is not needed. Over HTTP, `probeEraOverHttp` is
 * used.
 */
export function probeEra(options: ProbeOptions): EraProbe {
  const { open, keepProbed, version, timeoutMs, hasEnded = false, headers, onNoise, onLateEnd } = options;
  const { witnessAfterMs = defaultWitnessAfterMs } = options;
  let resolveOutcome: (outcome: ProbeOutcome) => void;
  const outcome = new Promise<ProbeOutcome>((resolve) => {
    resolveOutcome = resolve;
  });
  let isSettled = false;
  let isLate = false;
  /** True once the process is given back for a client: it is no longer the probe's to close. */
  let isKept = false;
  let witness: McpClient | undefined;
  let witnessTimer: NodeJS.Timeout | undefined;
  const endAll = async (): Promise<void> => {
    await Promise.all([isKept ? undefined : asked.close(), witness?.close()]);
  };
  const settle = (found: ProbeOutcome): Promise<void> => {
    if (isSettled) return endAll();
    isSettled = true;
    limit.clear();
    clearTimeout(witnessTimer);
    const { backend, openIds } = asked;
    isKept = found.era !== undefined && keepProbed !== undefined;
    if (found.era !== undefined) keepProbed?.(backend, found.era, openIds);
    resolveOutcome(found);
    return endAll();
  };
  let limit = new TimeLimit(() => {
    isLate = true;
    detach('shared_process', settle({ era: undefined, end: undefined }));
  }, timeoutMs);

  const onEnd = (end: BackendEnd): void => {
    if (isLate) onLateEnd?.(end);
  };
  const start = (requestHeaders?: ForwardedHeaders): McpClient =>
    new McpClient(open, { version }, { onNoise: (line) => onNoise?.(line), onEnd }, requestHeaders);

  /** The first process gets `server/discover`. */
  const askFirst = async (): Promise<void> => {
    const answer = await asked.discover();
    if (isSettled) return;
    if (isResponse(answer)) return settle({ era: readDiscovery(answer).era, isDoubtful: false });
    if (answer.kind === 'ended' && answer.end?.reason === 'exited' && !hasEnded) return askSecond();
    return settle(withoutEra(answer));
  };

  /** The second process, after the end of the first one, gets `initialize`, and `server/discover` after a refusal. */
  const askSecond = async (): Promise<void> => {
    clearTimeout(witnessTimer);
    if (witness !== undefined) detach('shared_process', witness.close());
    witness = undefined;
    asked = start();
    const greeting = await asked.initialize();
    if (isSettled) return;
    if (!isResponse(greeting)) return settle(withoutEra(greeting));
    if (!greeting.isError) return settle({ era: 'legacy', isDoubtful: true });
    if (readDiscovery(greeting).era === 'modern') return settle({ era: 'modern', isDoubtful: false });
    const answer = await asked.discover();
    if (isSettled) return;
    return settle(isResponse(answer) ? { era: readDiscovery(answer).era, isDoubtful: true } : withoutEra(answer));
  };

  /** Starts the process that shows whether the server answers `initialize`. Its end proves nothing. */
  const askWitness = async (): Promise<void> => {
    const own = new McpClient(open, { version });
    witness = own;
    const greeting = await own.initialize();
    if (!isResponse(greeting) || isSettled || own !== witness) return;
    limit.clear();
    const { era } = readDiscovery(greeting);
    limit = new TimeLimit(() => detach('shared_process', settle({ era, isDoubtful: false })), lateDiscoveryMs);
  };

  let asked = start(headers);
  detach('shared_process', askFirst());
  witnessTimer = setTimeout(() => detach('shared_process', askWitness()), Math.min(witnessAfterMs, timeoutMs / 2));
  return { outcome, close: () => settle({ era: undefined, end: undefined }) };
}

const withoutEra = (answer: NoResponse): ProbeOutcome => ({
  era: undefined,
  end: answer.kind === 'ended' ? answer.end : undefined,
  isEcho: answer.kind === 'echo',
});
