import { readHandshake } from '../../../../core/protocol/handshake.ts';
import { objectAt, stringAt } from '../../../../core/protocol/json.ts';
import { type Message, readGatewayMessage } from '../../../../core/protocol/message/message.ts';
import { serverInfoKey } from '../../../../core/protocol/modern/envelope.ts';
import { withoutUntranslated } from '../legacy-on-modern/legacy-client.ts';
import { noCaching } from './modern-response.ts';

/** The contents of a legacy server's answer to `initialize`, as JSON text. */
export interface InitializedServer {
  /** The revision that the server chose. */
  readonly protocolVersion: string;
  readonly capabilitiesText: string;
  /** Undefined if the server did not identify itself. */
  readonly serverInfoText: string | undefined;
  readonly instructionsText: string | undefined;
}

/** Reads a legacy server's answer to `initialize`; undefined for one that opens no session (`readHandshake`). */
export function readInitialized(response: Buffer): InitializedServer | undefined {
  const handshake = readHandshake(response);
  if (handshake === undefined) return undefined;
  const capabilities = objectAt(response, ['result', 'capabilities']) ?? Buffer.from('{}');
  return {
    protocolVersion: handshake.protocolVersion,
    capabilitiesText: withoutUntranslated(capabilities).toString(),
    serverInfoText: objectAt(response, ['result', 'serverInfo'])?.toString(),
    instructionsText: stringAt(response, ['result', 'instructions'])?.toString(),
  };
}

/**
 * Creates the answer to `server/discover` for a legacy server from its answer to `initialize` (2026-07-28,
 * server/discover).
 * @param idText the id of the request, as JSON text
 * @param versions the revisions in which clients can use the server here
 */
export function toDiscovery(opened: InitializedServer, idText: string, versions: readonly string[]): Message {
  const { capabilitiesText, serverInfoText, instructionsText } = opened;
  const members = [
    '"resultType":"complete"',
    ...noCaching.map(([key, value]) => `"${key}":${value}`),
    `"supportedVersions":${JSON.stringify(versions)}`,
    `"capabilities":${capabilitiesText}`,
    ...(instructionsText === undefined ? [] : [`"instructions":${instructionsText}`]),
    ...(serverInfoText === undefined ? [] : [`"_meta":{"${serverInfoKey}":${serverInfoText}}`]),
  ];
  return readGatewayMessage(Buffer.from(`{"jsonrpc":"2.0","id":${idText},"result":{${members.join()}}}`));
}
