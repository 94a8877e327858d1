import type { RequestId } from '../../protocol/faults.ts';
import { findRange, valueAt } from '../../protocol/json/splice.ts';
import { type Message, memberRange, readGatewayMessage } from '../../protocol/message/message.ts';
import { statusOf } from '../../protocol/modern/error-status.ts';
import { type RenumberedRequest, renumber, restoreId } from '../../protocol/modern/renumber.ts';
import { asLegacyRequest } from '../../protocol/translate/modern-on-legacy/legacy-request.ts';
import { asModernResponse } from '../../protocol/translate/modern-on-legacy/modern-response.ts';

/** What is known where a response is given its client's form. */
export interface FormedAnswer {
  readonly request: Message;
  /** The id as the client wrote it, as JSON text. */
  readonly idText: string;
  /** Who the server said it is, as JSON text. */
  readonly serverInfoText: string | undefined;
  /** What the server said that it can do, as JSON text. */
  readonly capabilitiesText: string;
  /** The request brought input with it. */
  readonly isRetry: boolean;
}

/** In which form a client without a session of its own speaks, while its requests run in a session of the legacy era. */
export interface ResponseForm {
  /** The request as the session gets it, under another id. */
  sent(request: Message, id: RequestId): RenumberedRequest;
  /** A server's response as the client gets it, with its HTTP status. */
  answered(response: Message, of: FormedAnswer): { readonly text: Buffer; readonly status: number };
  /** A client that leaves does not want its request to go on. */
  readonly cancelsByLeaving: boolean;
  /** A client is told what it would have had to declare for a question of the server; its request ends with that. */
  readonly namesMissingCapabilities: boolean;
}

/** A client of 2026-07-28, which is told of the legacy server in the words of its era. */
export const modernForm: ResponseForm = {
  sent: asLegacyRequest,
  answered(response, { request, capabilitiesText, ...of }) {
    const method = request.method as string;
    const uriText = method === 'resources/read' ? uriTextOf(request) : undefined;
    const text = asModernResponse(response, { method, uriText, ...of });
    const isError = memberRange(response, 'message', 'error') !== undefined;
    const declares = (capability: string): boolean =>
      typeof findRange(Buffer.from(capabilitiesText), [capability]) === 'object';
    return { text, status: isError ? statusOf(readGatewayMessage(text), method, declares) : 200 };
  },
  cancelsByLeaving: true,
  namesMissingCapabilities: true,
};

/** The `uri` of a request as it is written; undefined for anything but a string, which alone has no line breaks. */
function uriTextOf(request: Message): string | undefined {
  const text = valueAt(request.text, ['params', 'uri']);
  return text?.[0] === 0x22 ? text.toString() : undefined;
}

/**
 * A legacy client without a session (docs/decisions/0031): what it and its server write passes as it is, but for the id and the
 * progress token. A disconnect is not a cancel (2025-11-25, basic/transports, "Sending Messages to the Server").
 */
export const legacyForm: ResponseForm = {
  sent: renumber,
  answered: (response, { idText }) => ({ text: restoreId(response, idText), status: 200 }),
  cancelsByLeaving: false,
  namesMissingCapabilities: false,
};
