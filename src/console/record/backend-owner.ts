/** Whose backends they are: a session's, by its short name, or those that all clients of a server share. */
export interface BackendOwner {
  readonly server: string;
  readonly session?: string | undefined;
}

/** The key of an owner; server names have no blank. */
export const backendOwnerKey = ({ server, session = '' }: BackendOwner): string => `${server} ${session}`;
