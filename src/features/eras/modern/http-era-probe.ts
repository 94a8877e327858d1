import type { EraProbe, ProbeOutcome } from '../../../app/features/eras.ts';
import type { BackendEnd, OpenBackend } from '../../../core/backend/backend.ts';
import { McpClient } from '../../../core/backend/mcp-client.ts';
import { isResponse } from '../../../core/backend/own-requests.ts';
import { readDiscovery } from '../../../core/protocol/modern/discovery.ts';
import { detach } from '../../../core/util/boundary.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import { lateDiscoveryMs, type ProbeOptions } from './era-probe.ts';

/** Options of a probe over HTTP. */
export interface HttpProbeOptions extends Pick<ProbeOptions, 'open' | 'version' | 'timeoutMs' | 'headers'> {
  /** Opens a connection of the legacy era, for a server whose answer to `server/discover` does not show the era. */
  readonly openLegacy?: OpenBackend | undefined;
}

/**
 * How long `server/discover` may be unanswered before `initialize` is sent as well. Some legacy servers never answer a
 * request without a session. A host that wakes up answers both.
 */
const maxSilenceMs = 5_000;

/**
 * Finds out the era of a server over HTTP (2026-07-28, basic/transports/streamable-http, "Backward Compatibility"), where
 * each era has its own connections. `server/discover` is sent first. A server that refuses it by a status or error of the
 * legacy era is a legacy server. After any other answer than the one expected, or none for a while, `initialize` is sent
 * on a connection of the legacy era, and a result means the legacy era. If both fail, the server is away, unwell or
 * denies access.
 */
export function probeEraOverHttp({ open, openLegacy, version, timeoutMs, headers }: HttpProbeOptions): EraProbe {
  let resolveOutcome: (outcome: ProbeOutcome) => void;
  const outcome = new Promise<ProbeOutcome>((resolve) => {
    resolveOutcome = resolve;
  });
  let legacy: McpClient | undefined;
  let isSettled = false;
  const endAll = async (): Promise<void> => {
    await Promise.all([modern.close(), legacy?.close({ isForGood: true })]);
  };
  const settle = (found: ProbeOutcome): Promise<void> => {
    isSettled = true;
    limit.clear();
    clearTimeout(silence);
    resolveOutcome(found); // has no effect if there is an outcome
    return endAll();
  };
  const settleNow = (found: ProbeOutcome): void => detach('shared_process', settle(found));
  let limit = new TimeLimit(() => settleNow({ era: undefined, end: undefined }), timeoutMs);

  /** The ends of both connections, once they have failed. */
  const failed: { modern?: BackendEnd; legacy?: BackendEnd } = {};
  const settleIfFailed = (): void => {
    if (isSettled || failed.modern === undefined || (legacy !== undefined && failed.legacy === undefined)) return;
    settleNow({ era: undefined, end: withBothReasons(failed.modern, failed.legacy) });
  };

  const failModern = (end: BackendEnd): void => {
    if (isSettled) return;
    failed.modern ??= end;
    if (end.isOtherTransport) return settleNow({ era: 'legacy', isDoubtful: true });
    if (end.isOddAnswer) tryLegacy();
    settleIfFailed();
  };

  const tryLegacy = (): void => {
    if (openLegacy === undefined || legacy !== undefined) return;
    const onEnd = (end: BackendEnd): void => {
      failed.legacy = end;
      settleIfFailed();
    };
    const opening = headers && { headers: () => headers };
    legacy = new McpClient((events) => openLegacy(events, opening), { version }, { onEnd }, headers);
    detach('shared_process', judgeLegacy(legacy));
  };

  const judgeLegacy = async (client: McpClient): Promise<void> => {
    const greeting = await client.initialize();
    if (!isResponse(greeting) || isSettled) return; // the backend ends
    const { era } = greeting.isError ? readDiscovery(greeting) : { era: 'legacy' as const };
    if (era === 'modern') return settle({ era, isDoubtful: false });
    limit.clear();
    const waitMs = failed.modern === undefined ? lateDiscoveryMs : 0;
    limit = new TimeLimit(() => settleNow({ era, isDoubtful: greeting.isError }), waitMs);
  };

  const judgeModern = async (): Promise<void> => {
    const answer = await modern.discover();
    if (isSettled) return;
    if (isResponse(answer)) return settle({ era: readDiscovery(answer).era, isDoubtful: false });
    failModern((answer.kind === 'ended' && answer.end) || noDiscovery);
  };

  const modern = new McpClient(open, { version }, {}, headers);
  detach('shared_process', judgeModern());
  const silence = setTimeout(tryLegacy, Math.min(maxSilenceMs, timeoutMs / 3));
  return { outcome, close: () => settle({ era: undefined, end: undefined }) };
}

const noDiscovery: BackendEnd = {
  reason: 'failed',
  detail: 'The server did not answer server/discover.',
  isOddAnswer: true,
};

/** The end of a server that failed in both eras. */
function withBothReasons(modern: BackendEnd, legacy: BackendEnd | undefined): BackendEnd {
  if (legacy === undefined || legacy.detail === modern.detail) return modern;
  const advice = 'If you know the era of the server, set --era legacy or --era modern.';
  return { ...modern, detail: `${modern.detail} initialize failed, too: ${legacy.detail} ${advice}` };
}
