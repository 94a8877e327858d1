import type { Backend, BackendEnd } from '../backend/backend.ts';
import type { BackendOfProbe, OpenForProbe } from '../backend/starting/probed-backend.ts';
import type { RequestId } from '../protocol/faults.ts';
import { initializeRequest } from '../protocol/handshake.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../protocol/ids/own-ids.ts';
import { createMessage, type Message, responsesIn } from '../protocol/message/message.ts';
import { readDiscovery } from '../protocol/modern/discovery.ts';
import { discoverRequest } from '../protocol/modern/envelope.ts';
import type { Era } from '../protocol/revisions.ts';
import { detach } from '../util/boundary.ts';
import { TimeLimit } from '../util/timing/time-limit.ts';

/** The result of a probe: the era, or the end that prevented an answer. */
export type ProbeOutcome =
  | {
      readonly era: Era;
      /** True for a refusal that legacy servers give, but that can have another reason. */
      readonly isDoubtful: boolean;
    }
  | { readonly era: undefined; readonly end: BackendEnd | undefined };

/** A running probe. */
export interface EraProbe {
  readonly outcome: Promise<ProbeOutcome>;
  /** Ends the probe and its process. Resolves when both are gone. */
  close(): Promise<void>;
}

export interface ProbeOptions {
  /** Opens a process or a connection that serves nobody yet. */
  readonly open: OpenForProbe;
  readonly version: string;
  /** How long the server has to answer. */
  readonly timeoutMs: number;
  /** How long the server may be silent before a second process shows whether it answers `initialize`. */
  readonly witnessAfterMs?: number;
  /** True if a process has just ended on `initialize` alone: no second process is started to test that. */
  readonly hasEnded?: boolean;
  /** The headers of the client's request that needs the era. */
  readonly headers?: ForwardedHeaders;
  /** Reports the end of a process that was closed because it did not answer in time. */
  readonly onLateEnd?: (end: BackendEnd) => void;
}

/** How long `server/discover` may still be answered after `initialize` was, although it was sent first. */
const lateDiscoveryMs = 1_000;

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
 * serves the first client afterwards, so that a server starts once (docs/decisions/0159). If it stays silent, a second
 * process gets `initialize`: the answer shows a legacy server that ignores `server/discover`.
 *
 * A process that ends proves nothing: it may have crashed. One more process is started and gets `initialize` alone. A
 * result means the legacy era. After a refusal that process gets `server/discover` too. If the second process ends as
 * well, the server does not start. With `hasEnded` the second process is not needed. Over HTTP, `probeEraOverHttp` is
 * used.
 */
export function probeEra(options: ProbeOptions): EraProbe {
  const { open, version, timeoutMs, hasEnded = false, headers, onLateEnd } = options;
  const { witnessAfterMs = defaultWitnessAfterMs } = options;
  let resolveOutcome: (outcome: ProbeOutcome) => void;
  const outcome = new Promise<ProbeOutcome>((resolve) => {
    resolveOutcome = resolve;
  });
  const discover = nextOwnId();
  const initialize = nextOwnId();
  /** The requests of the probe that the current process may still answer. */
  const unanswered = new Set<RequestId>();
  let isSettled = false;
  let isLate = false;
  /** True once the process is given back for a client: it is no longer the probe's to close. */
  let isKept = false;
  let witness: Backend | undefined;
  let witnessTimer: NodeJS.Timeout | undefined;
  const endAll = async (): Promise<void> => {
    await Promise.all([isKept ? undefined : backend.close(), witness?.close()]);
  };
  const settle = (found: ProbeOutcome): Promise<void> => {
    if (isSettled) return endAll();
    isSettled = true;
    limit.clear();
    clearTimeout(witnessTimer);
    isKept = found.era !== undefined && backend.keepFor !== undefined;
    if (found.era !== undefined) backend.keepFor?.(found.era, unanswered);
    resolveOutcome(found);
    return endAll();
  };
  let limit = new TimeLimit(() => {
    isLate = true;
    detach('shared_process', settle({ era: undefined, end: undefined }));
  }, timeoutMs);

  const discovery = discoverRequest(discover, { version });
  const opening = initializeRequest(initialize, version);
  const ask = (asked: Backend, request: Message, requestHeaders?: ForwardedHeaders): void => {
    unanswered.add(request.id as RequestId);
    asked.send(request, requestHeaders);
  };

  const onUnanswered = (): void => detach('shared_process', settle({ era: undefined, end: undefined }));

  const startSecond = (): BackendOfProbe => {
    unanswered.clear();
    clearTimeout(witnessTimer);
    if (witness !== undefined) detach('shared_process', witness.close());
    witness = undefined;
    const second = open({
      onMessages(messages) {
        answerPings(second, messages);
        for (const response of responsesIn(messages)) {
          if (response.id != null) unanswered.delete(response.id);
          if (response.id === discover)
            detach('shared_process', settle({ era: readDiscovery(response).era, isDoubtful: true }));
          if (response.id !== initialize) continue;
          if (!response.isError) detach('shared_process', settle({ era: 'legacy', isDoubtful: true }));
          else if (readDiscovery(response).era === 'modern')
            detach('shared_process', settle({ era: 'modern', isDoubtful: false }));
          else ask(second, discovery);
        }
      },
      onNoise: () => undefined,
      onUnanswered,
      onEnd(end) {
        if (isLate) onLateEnd?.(end);
        else detach('shared_process', settle({ era: undefined, end }));
      },
    });
    ask(second, opening);
    return second;
  };

  let backend = open({
    onMessages(messages) {
      if (!isSettled) answerPings(backend, messages);
      for (const response of responsesIn(messages)) {
        if (response.id != null) unanswered.delete(response.id);
        if (response.id === discover)
          detach('shared_process', settle({ era: readDiscovery(response).era, isDoubtful: false }));
      }
    },
    onNoise: () => undefined,
    onUnanswered,
    onEnd(end) {
      if (isLate) onLateEnd?.(end);
      if (isSettled) return;
      if (end.reason === 'exited' && !hasEnded) backend = startSecond();
      else detach('shared_process', settle({ era: undefined, end }));
    },
  });
  ask(backend, discovery, headers);

  /** Starts the process that shows whether the server answers `initialize`. Its end proves nothing. */
  const startWitness = (): void => {
    const asked = open({
      onMessages(messages) {
        answerPings(asked, messages);
        const answer = responsesIn(messages).find(({ id }) => id === initialize);
        if (answer === undefined || isSettled || asked !== witness) return;
        limit.clear();
        const { era } = readDiscovery(answer);
        limit = new TimeLimit(() => detach('shared_process', settle({ era, isDoubtful: false })), lateDiscoveryMs);
      },
      onNoise: () => undefined,
      onUnanswered: () => undefined,
      onEnd: () => undefined,
    });
    witness = asked;
    asked.send(opening);
  };
  witnessTimer = setTimeout(startWitness, Math.min(witnessAfterMs, timeoutMs / 2));
  return { outcome, close: () => settle({ era: undefined, end: undefined }) };
}

/** A server may wait for the answer to its `ping` before it goes on. */
export function answerPings(backend: Backend, messages: readonly Message[]): void {
  for (const { kind, id, method } of messages)
    if (kind === 'request' && method === 'ping') backend.send(createMessage({ id, result: {} }));
}
