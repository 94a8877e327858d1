import type { Backend, BackendEnd, OpenBackend } from '../backend/backend.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import { readResponse } from '../protocol/message/message.ts';
import { readDiscovery } from '../protocol/modern/discovery.ts';
import { ownRequest } from '../protocol/modern/envelope.ts';
import { type Era, legacyRevisions, modernRevisions } from '../protocol/revisions.ts';
import { detach } from '../util/boundary.ts';

/** What a probe found out: the era, or why nothing could be. */
export type ProbeOutcome =
  | {
      readonly era: Era;
      /** It refused the question as some servers of the legacy era do, but others can for another reason. */
      readonly isDoubtful: boolean;
    }
  | { readonly era: undefined; readonly end: BackendEnd | undefined };

/** A probe that runs. */
export interface EraProbe {
  readonly outcome: Promise<ProbeOutcome>;
  /** Ends the probe, if it still runs, and its process. Resolves when nothing of that is left. */
  close(): Promise<void>;
}

export interface ProbeOptions {
  /** Opens a process of the server, or a connection to it, that is used for nothing else. */
  readonly open: OpenBackend;
  readonly version: string;
  /** How long the process has to answer. */
  readonly timeoutMs: number;
  /** Over HTTP each question is answered on its own, and `initialize` is none of the modern era. */
  readonly isOverHttp?: boolean;
  /** A process has just ended on `initialize` alone, so that no other one is started for it. */
  readonly hasEnded?: boolean;
  /** Of the client whose request makes it necessary to ask. */
  readonly headers?: ForwardedHeaders;
  /** The end of a process that was ended since it did not answer in time. */
  readonly onLateEnd?: (end: BackendEnd) => void;
}

/** A server that answers `initialize` before it answers what came before it has so long for that. */
const laggardMs = 1_000;

const discover = 1;
const initialize = 2;

/**
 * Finds out the era of a server (2026-07-28, basic/transports/stdio, "Backward Compatibility") on a process of its own,
 * since a server of the legacy era may end on a request before `initialize`. That is sent right behind: a server that says
 * nothing to a question it does not know is found out by its answer to this one, and nobody waits for a time to be over.
 *
 * A process that ends proves nothing: it may have crashed. Another one is started once and gets `initialize` alone. A result
 * means the legacy era, a refusal has that process asked again; one that ends as well does not start. Where that has happened
 * before the question (`hasEnded`), one process is enough.
 *
 * Over HTTP (basic/transports/streamable-http, "Backward Compatibility") the question is alone. A server that refuses it
 * without an error of the modern era is of the other one; one that is away, not well, or lets nobody in says nothing.
 */
export function probeEra(options: ProbeOptions): EraProbe {
  const { open, version, timeoutMs, isOverHttp = false, hasEnded = false, headers, onLateEnd } = options;
  let tell: (outcome: ProbeOutcome) => void;
  const outcome = new Promise<ProbeOutcome>((resolve) => {
    tell = resolve;
  });
  let isSettled = false;
  let isLate = false;
  const settle = (found: ProbeOutcome): Promise<void> => {
    if (!isSettled) tell(found);
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
  const opening = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: initialize, method: 'initialize', params }));

  const onUnanswered = (): void => detach('shared_process', settle({ era: undefined, end: undefined }));

  const startAgain = (): Backend => {
    const again = open({
      onMessages(lines) {
        for (const response of lines.map(readResponse)) {
          if (response?.id === discover)
            detach('shared_process', settle({ era: readDiscovery(response).era, isDoubtful: true }));
          if (response?.id !== initialize) continue;
          const isOpened = response.memberRanges.message?.keys.includes('result') === true;
          if (isOpened) detach('shared_process', settle({ era: 'legacy', isDoubtful: true }));
          else if (readDiscovery(response).era === 'modern')
            detach('shared_process', settle({ era: 'modern', isDoubtful: false }));
          else again.send(discovery);
        }
      },
      onUnanswered,
      onEnd(end) {
        if (isLate) onLateEnd?.(end);
        else detach('shared_process', settle({ era: undefined, end }));
      },
    });
    again.send(opening);
    return again;
  };

  let backend = open({
    onMessages(lines) {
      for (const line of lines) {
        const response = readResponse(line);
        if (response?.id === discover)
          detach('shared_process', settle({ era: readDiscovery(response).era, isDoubtful: false }));
        if (response?.id !== initialize || isSettled) continue;
        clearTimeout(timer);
        timer = setTimeout(() => settle({ era: 'legacy', isDoubtful: false }), laggardMs);
      }
    },
    onUnanswered,
    onEnd(end) {
      if (isLate) onLateEnd?.(end);
      if (isSettled) return;
      if (end.isOtherTransport) detach('shared_process', settle({ era: 'legacy', isDoubtful: true }));
      else if (end.reason === 'exited' && !isOverHttp && !hasEnded) backend = startAgain();
      else detach('shared_process', settle({ era: undefined, end }));
    },
  });
  backend.send(discovery, headers);
  if (!isOverHttp) backend.send(opening);
  return { outcome, close: () => settle({ era: undefined, end: undefined }) };
}
