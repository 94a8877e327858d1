import {
  MirroredParametersByClient,
  type MirroredParametersOptions,
  type MirroredToolParameters,
} from '../../backend/mirrored-parameters.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { RequestHeaders } from '../../protocol/modern/mirrored-headers.ts';
import { checkParamHeaders } from '../../protocol/modern/param-headers.ts';

/** What came of the check of a call: it passes, or this is wrong with it. */
export type ParamFault = { readonly header: string } | 'duplicate_key' | undefined;

/**
 * Checks the mirrored parameters of calls (2026-07-28, basic/transports/streamable-http, "Server Behavior for Custom
 * Headers") by what is known of the server's tools, which is asked for again where a call would be refused by what may be
 * old. Each client is judged by what it could list itself. A call of a tool that is not in the list passes, and so do all where no list can be had.
 */
export class ToolHeaders {
  readonly #tools: MirroredParametersByClient;

  constructor(options: MirroredParametersOptions) {
    this.#tools = new MirroredParametersByClient(options);
  }

  /**
   * Learns from a list of tools that passes, or a page of one.
   * @param forwarded headers of the client that gets it
   */
  learn(response: Buffer, forwarded: ForwardedHeaders = noHeaders): void {
    this.#tools.of(forwarded).learn(response);
  }

  /** The list has changed, or there is another process. */
  forget(): void {
    this.#tools.forget();
  }

  /**
   * Checks a call: at once where the tool is known and nothing is wrong, else after asking the server.
   * @param forwarded headers of the client for the server
   */
  check(
    call: Message,
    tool: unknown,
    headers: RequestHeaders,
    forwarded: ForwardedHeaders = noHeaders,
  ): ParamFault | Promise<ParamFault> {
    if (typeof tool !== 'string') return undefined; // the server's to refuse
    const checkBy = (params: MirroredToolParameters): ParamFault => params && checkParamHeaders(params, call, headers);
    const tools = this.#tools.of(forwarded);
    const found = tools.find(tool, forwarded);
    if (found instanceof Promise) return found.then(checkBy);
    const fault = checkBy(found);
    if (fault === undefined || tools.isFresh) return fault;
    return tools.findAnew(tool, forwarded).then(checkBy);
  }
}
