import type { OpenBackend } from '../backend/backend.ts';
import type { ClientCredentials } from '../protocol/http/client-credentials.ts';

/** One configured server, as sessions use it. */
export interface Server {
  readonly name: string;
  /** Tells two configurations of the server apart: an instance with another one must not restore its sessions. */
  readonly digest: string;
  readonly open: OpenBackend;
  /** The headers of its clients that it is to get, in small letters; absent for none. */
  readonly forwardHeaders?: readonly string[];
  /** What it gets of each of its clients beside that, and does not serve without; absent for nothing. */
  readonly credentials?: ClientCredentials | undefined;
  /** True if somebody else runs it: it may be away for a while, and is back without the gateway starting it. */
  readonly isRemote: boolean;
  /** True if sessions certainly have no process of their own, but one that all share. */
  readonly sharesProcess?: boolean;
  /** How long a new backend may take to answer `initialize`. */
  readonly startTimeoutMs: number;
  /** What becomes of a session whose backend ends by itself (docs/design.md, D5). */
  readonly onBackendExit: 'restore' | 'end';
  /** A session that is idle for so many milliseconds lets go of its backend until it is used again; absent for never. */
  readonly hibernateAfterMs?: number | undefined;
  /** Which calls are run again after a restore; see `Reruns`. */
  readonly rerun: 'safe' | 'hints';
}

/** True for a server that is not the same to all: what one client brings for it says nothing of another. */
export const differsByClient = ({ forwardHeaders = [], credentials }: Server): boolean =>
  forwardHeaders.length > 0 || credentials !== undefined;
