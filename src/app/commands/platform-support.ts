import type { ServerConfig } from '../../config/config.ts';
import { docsPage } from '../../core/util/docs-page.ts';

/** What does not work on an operating system; undefined if nothing is known. */
interface PlatformSupport {
  /** Why these servers cannot be served at all, and the remedy. */
  readonly obstacle?: string;
  /** What the operator should know, for the log. */
  readonly warning?: string;
}

const platformPage = docsPage('deploy.md#windows-and-macos');

/**
 * Says what does not work on an operating system. A STDIO server without a process group would leave its children
 * behind (P10), so the gateway does not start it there.
 */
export function platformSupport(platform: NodeJS.Platform, servers: readonly ServerConfig[]): PlatformSupport {
  if (platform !== 'win32') return {};
  const remedy = `Run the gateway in WSL2 or Docker; see ${platformPage}`;
  const names = (isMeant: (server: ServerConfig) => boolean): string =>
    servers
      .filter(isMeant)
      .map(({ name }) => name)
      .join(', ');
  const local = names(({ address }) => address === undefined);
  if (local !== '')
    return {
      obstacle: `STDIO servers (${local}) need process groups and signals, which Windows does not have. ${remedy}`,
    };
  const sockets = names(({ address }) => address?.transport === 'unix');
  if (sockets !== '')
    return {
      obstacle: `servers at unix:// (${sockets}) need Unix sockets, which Node.js does not have on Windows. ${remedy}`,
    };
  return { warning: `The gateway was never tested on Windows, and cannot shut down gracefully there. ${remedy}` };
}
