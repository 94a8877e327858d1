import {
  MirroredParametersByClient,
  type MirroredParametersOptions,
  type MirroredToolParameters,
} from '../../../../core/backend/mirrored-parameters.ts';
import { type ForwardedHeaders, noHeaders } from '../../../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';
import type { RequestHeaders } from '../../../../core/protocol/modern/mirrored-headers.ts';
import { checkParamHeaders } from '../../../../core/protocol/modern/param-headers.ts';

/** The outcome of checking a call: undefined if it passes, else the fault. */
export type ParamFault = { readonly header: string } | 'duplicate_key' | undefined;

/**
 * Checks the mirrored parameters of calls (2026-07-28, basic/transports/streamable-http, "Server Behavior for Custom
 * Headers") against the known tools of the server. The list is fetched again before a stale list would refuse a call.
 * Each client is judged by the list that it would get itself. A call of an unlisted tool passes; so does every call
 * when no list is available.
 */
export class ToolHeaders {
  readonly #tools: MirroredParametersByClient;

  constructor(options: MirroredParametersOptions) {
    this.#tools = new MirroredParametersByClient(options);
  }

  /**
   * Learns from a passing list of tools, or a page of one.
   * @param forwarded the forwarded headers of the client that gets the list
   */
  learn(response: Buffer, forwarded: ForwardedHeaders = noHeaders): void {
    this.#tools.forClient(forwarded).learn(response);
  }

  /** Forgets the tools: the list has changed, or the process was replaced. */
  forget(): void {
    this.#tools.forget();
  }

  /**
   * Checks a call: at once where the tool is known and nothing is wrong, else after asking the server.
   * @param forwarded the client's headers for the server
   */
  check(
    call: Message,
    tool: unknown,
    headers: RequestHeaders,
    forwarded: ForwardedHeaders = noHeaders,
  ): ParamFault | Promise<ParamFault> {
    if (typeof tool !== 'string') return undefined; // the server refuses it
    const checkBy = (params: MirroredToolParameters): ParamFault => params && checkParamHeaders(params, call, headers);
    const tools = this.#tools.forClient(forwarded);
    const found = tools.find(tool, forwarded);
    if (found instanceof Promise) return found.then(checkBy);
    const fault = checkBy(found);
    if (fault === undefined || tools.isFresh) return fault;
    return tools.findAnew(tool, forwarded).then(checkBy);
  }
}
