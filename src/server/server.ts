// src/server: a configured server, as the other rooms see it.
import type { OpenBackend } from '../backend/backend.ts';
import type { ClientCredentials } from '../protocol/http/client-credentials.ts';

/** One configured server, as sessions use it. */
export interface Server {
  readonly name: string;
  /** Identifies the server's configuration. An instance with another digest must not restore the server's sessions. */
  readonly digest: string;
  readonly open: OpenBackend;
  /** The client headers that the server gets, in lower case; absent for none. */
  readonly forwardHeaders?: readonly string[];
  /** The further credentials of each client that the server gets and requires; absent for none. */
  readonly credentials?: ClientCredentials | undefined;
  /** True if the gateway does not run the server. The server may then be away for a while and come back by itself. */
  readonly isRemote: boolean;
  /** True if sessions never have a process of their own, but share one. */
  readonly sharesProcess?: boolean;
  /** True if sessions may use processes one after another. Their holders then report each start. */
  readonly keepsProcesses?: boolean;
  /** How long a new backend may take to answer `initialize`. */
  readonly startTimeoutMs: number;
  /** The treatment of a session whose backend ends by itself (docs/design.md, D5). */
  readonly onBackendExit: 'restore' | 'end';
  /** The idle time after which a session releases its backend until the session is used again; absent for never. */
  readonly hibernateAfterMs?: number | undefined;
  /** Decides which calls are run again after a restore; see `RerunPolicy`. */
  readonly rerun: 'safe' | 'hints';
}

/**
 * True for a server that gets headers or credentials of its clients, so that its answers may differ between clients.
 */
export const differsByClient = ({ forwardHeaders = [], credentials }: Server): boolean =>
  forwardHeaders.length > 0 || credentials !== undefined;
