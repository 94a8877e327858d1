import { type ForwardedHeaders, noHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { type Message, memberValue } from '../../../core/protocol/message/message.ts';
import type { RequestHeaders } from '../../../core/protocol/modern/mirrored-headers.ts';
import { mayMirror } from '../../../core/protocol/modern/param-headers.ts';
import type { Principal } from '../../../core/protocol/principal.ts';
import { BoundedMap } from '../../../core/util/bounded-map.ts';
import { type ParamFault, ToolHeaders } from '../modern/process/tool-headers.ts';

/** Who gets a list of tools: a list may be for one client only (P11). */
export interface ToolListOwner {
  readonly owner: Principal;
  readonly forwarded: ForwardedHeaders | undefined;
}

/** How many owners' tools are remembered; for others the server is asked again (P8). */
const maxOwners = 100;

const paramPrefix = 'mcp-param-';

/**
 * Checks the mirrored parameters of calls at a legacy server, whose schemas can require them too (2026-07-28,
 * server/tools, "x-mcp-header"). Hardly any schema does, and fetching a list can mean starting a process. So the server
 * is asked only for a call with such a header, or once a list with such a tool has passed.
 */
export class GroupTools {
  readonly #list: (owner: ToolListOwner, cursor: string | undefined) => Promise<Buffer | undefined>;
  readonly #byOwner = new BoundedMap<string, ToolHeaders>(maxOwners);

  /** @param list gets a page of the server's list of tools, with a request of the gateway's own */
  constructor(list: (owner: ToolListOwner, cursor: string | undefined) => Promise<Buffer | undefined>) {
    this.#list = list;
  }

  /** Learns from a passing list of tools, or a page of one. */
  learn(response: Buffer, owner: ToolListOwner): void {
    const known = this.#byOwner.get(ownerKey(owner));
    if (known === undefined && !mayMirror(response)) return;
    (known ?? this.#add(owner)).learn(response, owner.forwarded);
  }

  /** Checks a `tools/call`. */
  check(call: Message, headers: RequestHeaders, owner: ToolListOwner): ParamFault | Promise<ParamFault> {
    const isMirrored = Object.keys(headers).some((name) => name.startsWith(paramPrefix));
    if (!isMirrored && this.#byOwner.size === 0) return undefined;
    const known = this.#byOwner.get(ownerKey(owner));
    if (known === undefined && !isMirrored) return undefined;
    return (known ?? this.#add(owner)).check(call, memberValue(call, 'params', 'name'), headers, owner.forwarded);
  }

  #add(of: ToolListOwner): ToolHeaders {
    const { owner } = of;
    const tools = new ToolHeaders({
      list: (cursor, forwarded) =>
        this.#list({ owner, forwarded: forwarded === noHeaders ? undefined : forwarded }, cursor),
    });
    this.#byOwner.set(ownerKey(of), tools);
    return tools;
  }
}

const ownerKey = ({ owner: { issuer, subject, client } }: ToolListOwner): string =>
  JSON.stringify([issuer, subject, client]);
