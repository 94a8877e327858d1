import type { OpenBackend } from '../../core/backend/backend.ts';
import { modernRevisions, newestLegacy } from '../../core/protocol/known-revisions.ts';
import { readDiscovery } from '../../core/protocol/modern/discovery.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { Openers } from '../features/servers.ts';
import { version } from '../version.ts';
import { ProbeSession, RefusedError, ServerUnusableError, versionsIn } from './probe-session.ts';

/** What a server says about itself first. Except for the revisions, nothing is checked: a member may have any value. */
export interface Greeting {
  /** The revisions in which the gateway can use the server. Without one, the answer was none of MCP. */
  readonly revisions: readonly string[];
  readonly capabilities: unknown;
  readonly serverInfo: unknown;
}

/**
 * Opens a session of one era like a client, and uses it. Ends the session and the backend. Rejects with a sentence for
 * the operator if the server cannot be used.
 */
export async function askServer<T>(
  open: OpenBackend,
  era: Era,
  timeoutMs: number,
  use: (session: ProbeSession, greeting: Greeting) => T | Promise<T>,
): Promise<T> {
  const session = new ProbeSession(open, timeoutMs, era);
  try {
    return await use(session, await (era === 'legacy' ? initialize(session) : discover(session)));
  } finally {
    await session.close();
  }
}

async function initialize(session: ProbeSession): Promise<Greeting> {
  const result = await session.request('initialize', {
    protocolVersion: newestLegacy.name,
    capabilities: {},
    clientInfo: { name: 'mcp-gangway check', version },
  });
  session.notify('notifications/initialized');
  const { protocolVersion, capabilities, serverInfo } = result as Readonly<Record<string, unknown>>;
  return { revisions: typeof protocolVersion === 'string' ? [protocolVersion] : [], capabilities, serverInfo };
}

interface DiscoverResult {
  readonly supportedVersions?: unknown;
  readonly capabilities?: unknown;
  readonly _meta?: { readonly 'io.modelcontextprotocol/serverInfo'?: unknown } | null;
}

/**
 * Sends `server/discover` to a modern server. If the server refuses the version but names a revision that the gateway
 * supports, the request is sent once more (2026-07-28, basic/versioning). Rejects if the two share no revision.
 */
async function discover(session: ProbeSession): Promise<Greeting> {
  const ask = (): Promise<DiscoverResult> => session.request('server/discover', {}) as Promise<DiscoverResult>;
  const { supportedVersions, capabilities, _meta } = await ask().catch(
    (error: Error): DiscoverResult | Promise<DiscoverResult> => {
      const discovery = error instanceof RefusedError ? readDiscovery(error.response) : undefined;
      if (discovery?.era !== 'modern') throw error;
      return discovery.revisions.length > 0 ? ask() : { supportedVersions: discovery.supported };
    },
  );
  const supported: readonly unknown[] = Array.isArray(supportedVersions) ? supportedVersions : [];
  const revisions = modernRevisions.filter((revision) => supported.includes(revision));
  if (revisions.length > 0)
    return { revisions, capabilities, serverInfo: _meta?.['io.modelcontextprotocol/serverInfo'] };
  throw new Error(
    `The server supports no modern revision that this gateway supports (${modernRevisions.join(', ')}).${versionsIn(supported)}`,
  );
}

/**
 * Explains to the operator why a server failed in the era of the `era` option. Tries the other era once, for at most
 * `timeoutMs`. If the server answers there, the returned error blames the option; else it is `error`. Never rejects.
 */
export async function explainForcedEra(
  error: Error,
  era: Era,
  openers: Pick<Openers, 'open' | 'openModern'>,
  timeoutMs: number,
): Promise<Error> {
  const other: Era = era === 'modern' ? 'legacy' : 'modern';
  const open = other === 'modern' ? openers.openModern : openers.open;
  // A server that supports neither era was not made to fail by the option.
  const isOther =
    open !== undefined &&
    (await askServer(open, other, timeoutMs, (_, { revisions }) => revisions.length > 0).catch(() => false));
  if (!isOther) return error;
  const speaks = `The server supports the ${other} era, but --era is ${era}. Remove --era.`;
  return new ServerUnusableError(`${speaks} ${error.message}`);
}
