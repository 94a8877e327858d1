import type { RequestId } from './faults.ts';
import { parseBounded, scalarAt, splice, stringAt, valueAt } from './json.ts';
import { isLegacyRevision, namesModernRevision, newestLegacy } from './known-revisions.ts';
import { createMessage } from './message/message.ts';
import type { Message } from './message/message-type.ts';
import { methods } from './methods/methods.ts';

/** Creates the `initialize` of the gateway as a client without capabilities; `version` is its own version. */
export const initializeRequest = (id: RequestId, version: string): Message =>
  createMessage({
    id,
    method: 'initialize',
    params: {
      protocolVersion: newestLegacy.name,
      capabilities: {},
      clientInfo: { name: 'mcp-gangway', version },
    },
  });

/** The parts of a server's answer to `initialize` that the gateway needs (2025-11-25, basic/lifecycle). */
export interface Handshake {
  /** The revision of the legacy era that the server chose. */
  readonly protocolVersion: string;
  readonly capabilities: unknown;
}

/** A revision is a date. A longer text is not a revision, and would be stored in the record of each session (P8). */
const maxVersionLength = 64;

/** No session keeps a longer answer (P8): the answer stays in the session's record for its whole life, in Redis too. */
const maxAnswerBytes = 1024 * 1024;

/**
 * A longer `initialize` opens no session (P8): the session keeps it, and sends it again to a new process. Real clients
 * send a few hundred bytes.
 */
const maxInitializeBytes = 64 * 1024;

/** True for a client's `initialize` that is too large to open a session. */
export const isHandshakeTooLarge = ({ text }: Pick<Message, 'text'>): boolean => text.length > maxInitializeBytes;

/** Larger capabilities are not built (P8). Those of real servers have a few hundred bytes. */
const maxCapabilitiesBytes = 64 * 1024;

/** Reads a response to `initialize`; undefined if it is an error, names no revision, or exceeds a limit. */
export function readHandshake(response: Buffer): Handshake | undefined {
  if (response.length > maxAnswerBytes) return undefined;
  const protocolVersion = scalarAt(response, ['result', 'protocolVersion']);
  if (typeof protocolVersion !== 'string' || protocolVersion.length > maxVersionLength) return undefined;
  const chosen = namesModernRevision(protocolVersion) ? newestLegacy.name : protocolVersion;
  const capabilities = valueAt(response, ['result', 'capabilities']);
  if (capabilities === undefined) return { protocolVersion: chosen, capabilities: {} };
  const declared = parseBounded(capabilities, maxCapabilitiesBytes);
  return declared === undefined
    ? undefined
    : { protocolVersion: chosen, capabilities: (declared ?? {}) as Handshake['capabilities'] };
}

/**
 * Returns an `initialize` request, or the answer to one, with a revision of the legacy era. A server that knows only the
 * client's revision repeats it, and a client with a session of a modern revision would send requests without a session.
 */
export function withLegacyRevision(text: Buffer): Buffer {
  for (const path of revisionPaths) {
    const version = scalarAt(text, path);
    if (typeof version === 'string' && namesModernRevision(version))
      return splice(text, path, JSON.stringify(newestLegacy.name));
  }
  return text;
}

/**
 * Returns an answer to `initialize` with the revision of the request, if the server has agreed with another client on a
 * newer one. The legacy revisions differ only in what they add, and clients ignore what they do not know.
 */
export function forRequestedRevision(initialize: Buffer, answer: Buffer): Buffer {
  const [requested, agreed] = [scalarAt(initialize, revisionPaths[0]), scalarAt(answer, revisionPaths[1])];
  if (!isLegacyRevision(requested) || !isLegacyRevision(agreed) || String(agreed) <= String(requested)) return answer;
  return splice(answer, revisionPaths[1], JSON.stringify(requested));
}

const revisionPaths = [
  ['params', 'protocolVersion'],
  ['result', 'protocolVersion'],
] as const;

/**
 * True for an answer to `initialize` that is refused only because it or a part of it is too large. A client would
 * accept such an answer.
 */
export const isAnswerTooLarge = (response: Buffer): boolean =>
  response.length > maxAnswerBytes ||
  (readHandshake(response) === undefined && stringAt(response, ['result', 'protocolVersion']) !== undefined);

/** True if a server with the handshake `later` can replace one with `earlier`: same revision, no capability missing. */
export const canReplace = (later: Handshake, earlier: Handshake): boolean =>
  later.protocolVersion === earlier.protocolVersion && includes(later.capabilities, earlier.capabilities);

/** True if everything that is set in `part` is set in `whole`. Iterative: a server decides how deep its answer is. */
function includes(whole: unknown, part: unknown): boolean {
  const pairs: [unknown, unknown][] = [[whole, part]];
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [larger, smaller] = pair;
    if (smaller === false || smaller === undefined || smaller === null) continue;
    if (typeof smaller !== 'object') {
      if (larger !== smaller) return false;
    } else {
      if (typeof larger !== 'object' || larger === null) return false;
      for (const [key, value] of Object.entries(smaller)) {
        pairs.push([Object.getOwnPropertyDescriptor(larger, key)?.value, value]);
      }
    }
  }
  return true;
}

/**
 * The notifications of changed lists that a server with these capabilities may send. After a restore the gateway sends
 * them.
 */
export function declaredListChanges({ capabilities }: Handshake): Buffer[] {
  return methods
    .filter(({ changedLists: list }) => list !== undefined && includes(capabilities, { [list]: { listChanged: true } }))
    .map(({ name }) => Buffer.from(`{"jsonrpc":"2.0","method":"${name}"}`));
}
