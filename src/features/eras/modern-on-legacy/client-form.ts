import type { RequestId } from '../../../core/protocol/faults.ts';
import { findRange, stringAt } from '../../../core/protocol/json.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { methodOf, readsByUri } from '../../../core/protocol/methods/methods.ts';
import { revisionOf } from '../../../core/protocol/modern/envelope.ts';
import { statusOf } from '../../../core/protocol/modern/error-status.ts';
import { type ClientId, type RenumberedRequest, renumber, restoreId } from '../../../core/protocol/modern/renumber.ts';
import { asLegacyRequest } from '../translate/modern-on-legacy/legacy-request.ts';
import { asModernResponse } from '../translate/modern-on-legacy/modern-response.ts';

/** The context for converting a response to the client's form. */
export interface FormedAnswer extends ClientId {
  readonly request: Message;
  /** The server's `serverInfo`, as JSON text. */
  readonly serverInfoText: string | undefined;
  /** The server's capabilities, as JSON text. */
  readonly capabilitiesText: string;
  /** True if the request carries answers of the client. */
  readonly isRetry: boolean;
}

/** The wire form of a client without a session of its own, whose requests run in a session of the legacy era. */
export interface ResponseForm {
  /** Converts a request to the form that the session gets, under another id. */
  sent(request: Message, id: RequestId): RenumberedRequest;
  /** Converts a server's response to the form that the client gets, with its HTTP status. */
  answered(response: Message, context: FormedAnswer): { readonly response: Message; readonly status: number };
  /** True if an undeclared capability that a question needs ends the request with an error that names it. */
  readonly namesMissingCapabilities: boolean;
}

/** The form of a client of the modern era: responses are translated to it. */
export const modernForm: ResponseForm = {
  sent: asLegacyRequest,
  answered(response, { request, capabilitiesText, ...context }) {
    const method = request.method as string;
    const uriText = readsByUri(method) ? stringAt(request.text, ['params', 'uri'])?.toString() : undefined;
    const translated = asModernResponse(response, { method, uriText, ...context });
    const declares = (capability: string): boolean =>
      typeof findRange(Buffer.from(capabilitiesText), [capability]) === 'object';
    return { response: translated, status: statusOf(translated, method, declares, revisionOf(request)) };
  },
  namesMissingCapabilities: true,
};

/**
 * The form of a legacy client without a session (docs/decisions/0027). Messages pass unchanged, except for the id and
 * the progress token.
 */
export const legacyForm: ResponseForm = {
  sent: renumber,
  answered: (response, context) => ({ response: restoreId(response, context), status: 200 }),
  namesMissingCapabilities: false,
};

/** True for a request that only a session can serve, including one that begins a task (2025-11-25). */
export const needsSession = (request: Message): boolean => methodOf(request.method).needsSession || request.asksForTask;
