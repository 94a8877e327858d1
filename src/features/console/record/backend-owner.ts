/** The owner of backends: a session, by its short name, or all clients of a server together. */
export interface BackendOwner {
  readonly server: string;
  readonly session?: string | undefined;
}

/** Returns the map key of an owner. Server names contain no space. */
export const backendOwnerKey = ({ server, session = '' }: BackendOwner): string => `${server} ${session}`;
