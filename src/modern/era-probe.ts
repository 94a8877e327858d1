import type { Backend, BackendEnd, OpenBackend } from '../backend/backend.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import { createMessage, responsesIn } from '../protocol/message/message.ts';
import { readDiscovery } from '../protocol/modern/discovery.ts';
import { ownRequest } from '../protocol/modern/envelope.ts';
import { type Era, legacyRevisions, modernRevisions } from '../protocol/revisions.ts';
import { detach } from '../util/boundary.ts';

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
  /** Opens a process or a connection that serves only the probe. */
  readonly open: OpenBackend;
  readonly version: string;
  /** How long the server has to answer. */
  readonly timeoutMs: number;
  /** True over HTTP, where each request is answered on its own and `initialize` does not exist in the modern era. */
  readonly isOverHttp?: boolean;
  /** True if a process has just ended on `initialize` alone: no second process is started to test that. */
  readonly hasEnded?: boolean;
  /** The headers of the client's request that needs the era. */
  readonly headers?: ForwardedHeaders;
  /** Reports the end of a process that was closed because it did not answer in time. */
  readonly onLateEnd?: (end: BackendEnd) => void;
}

/** How long `server/discover` may still be answered after `initialize` was, although it was sent first. */
const lateDiscoveryMs = 1_000;

const discover = 1;
const initialize = 2;

/**
 * Finds out the era of a server (2026-07-28, basic/transports/stdio, "Backward Compatibility"). The probe has a process
 * of its own, since a legacy server may end on a request before `initialize`. `server/discover` is sent first and
 * `initialize` right behind. A legacy server that ignores `server/discover` is recognised by its answer to
 * `initialize`, without waiting for a timeout.
 *
 * A process that ends proves nothing: it may have crashed. One more process is started and gets `initialize` alone. A
 * result means the legacy era. After a refusal that process gets `server/discover` too. If the second process ends as
 * well, the server does not start. With `hasEnded` the second process is not needed.
 *
 * Over HTTP (basic/transports/streamable-http, "Backward Compatibility") `server/discover` is sent alone. A server that
 * refuses it without an error of the modern era is a legacy server. A server that is away, unwell or denies access
 * tells nothing.
 */
export function probeEra(options: ProbeOptions): EraProbe {
  const { open, version, timeoutMs, isOverHttp = false, hasEnded = false, headers, onLateEnd } = options;
  let resolveOutcome: (outcome: ProbeOutcome) => void;
  const outcome = new Promise<ProbeOutcome>((resolve) => {
    resolveOutcome = resolve;
  });
  let isSettled = false;
  let isLate = false;
  const settle = (found: ProbeOutcome): Promise<void> => {
    if (!isSettled) resolveOutcome(found);
    isSettled = true;
    clearTimeout(timer);
    return backend.close();
  };
  let timer = setTimeout(() => {
    isLate = true;
    detach('shared_process', settle({ era: undefined, end: undefined }));
  }, timeoutMs);

  const [protocolVersion] = modernRevisions.slice(-1) as [string];
  const discovery = ownRequest(discover, 'server/discover', {}, { version, protocolVersion });
  const clientInfo = { name: 'mcp-gangway', version };
  const params = { protocolVersion: legacyRevisions.at(-1), capabilities: {}, clientInfo };
  const initializeRequest = createMessage({ id: initialize, method: 'initialize', params });

  const onUnanswered = (): void => detach('shared_process', settle({ era: undefined, end: undefined }));

  const startSecond = (): Backend => {
    const second = open({
      onMessages(messages) {
        for (const response of responsesIn(messages)) {
          if (response.id === discover)
            detach('shared_process', settle({ era: readDiscovery(response).era, isDoubtful: true }));
          if (response.id !== initialize) continue;
          if (!response.isError) detach('shared_process', settle({ era: 'legacy', isDoubtful: true }));
          else if (readDiscovery(response).era === 'modern')
            detach('shared_process', settle({ era: 'modern', isDoubtful: false }));
          else second.send(discovery);
        }
      },
      onNoise: () => undefined,
      onUnanswered,
      onEnd(end) {
        if (isLate) onLateEnd?.(end);
        else detach('shared_process', settle({ era: undefined, end }));
      },
    });
    second.send(initializeRequest);
    return second;
  };

  let backend = open({
    onMessages(messages) {
      for (const response of responsesIn(messages)) {
        if (response.id === discover)
          detach('shared_process', settle({ era: readDiscovery(response).era, isDoubtful: false }));
        if (response.id !== initialize || isSettled) continue;
        clearTimeout(timer);
        timer = setTimeout(
          () => detach('shared_process', settle({ era: 'legacy', isDoubtful: false })),
          lateDiscoveryMs,
        );
      }
    },
    onNoise: () => undefined,
    onUnanswered,
    onEnd(end) {
      if (isLate) onLateEnd?.(end);
      if (isSettled) return;
      if (end.isOtherTransport) detach('shared_process', settle({ era: 'legacy', isDoubtful: true }));
      else if (end.reason === 'exited' && !isOverHttp && !hasEnded) backend = startSecond();
      else detach('shared_process', settle({ era: undefined, end }));
    },
  });
  backend.send(discovery, headers);
  if (!isOverHttp) backend.send(initializeRequest);
  return { outcome, close: () => settle({ era: undefined, end: undefined }) };
}
