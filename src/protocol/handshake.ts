/** What a server's answer to `initialize` says that the gateway needs (2025-11-25, basic/lifecycle). */
export interface Handshake {
  /** The revision that the server chose. */
  readonly protocolVersion: string;
  readonly capabilities: unknown;
}

/** Reads a response to `initialize`; undefined if it is an error or names no revision. */
export function readHandshake(response: Buffer): Handshake | undefined {
  const { result } = JSON.parse(response.toString()) as {
    result?: { protocolVersion?: unknown; capabilities?: unknown } | null;
  };
  if (typeof result?.protocolVersion !== 'string') return undefined;
  return { protocolVersion: result.protocolVersion, capabilities: result.capabilities ?? {} };
}

/** The code of the error with which a server refused `initialize`; undefined if there is none. */
export function readRefusal(response: Buffer): number | undefined {
  const { error } = JSON.parse(response.toString()) as { error?: { code?: unknown } | null };
  return typeof error?.code === 'number' ? error.code : undefined;
}

/** True if a server that said `later` can stand in for one that said `earlier`: same revision, no capability less. */
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

/** Lists that can change, with the notification that says so; announced after a restore where the server declares it. */
const changingLists = ['tools', 'prompts', 'resources'] as const;

/** The `list_changed` notifications that a server with these capabilities may send. */
export function declaredListChanges({ capabilities }: Handshake): Buffer[] {
  return changingLists
    .filter((list) => includes(capabilities, { [list]: { listChanged: true } }))
    .map((list) => Buffer.from(`{"jsonrpc":"2.0","method":"notifications/${list}/list_changed"}`));
}
