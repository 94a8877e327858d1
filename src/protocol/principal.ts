/** Who made a session; to anyone else it does not exist (P11). All empty while the gateway does no authentication. */
export interface Principal {
  readonly issuer: string;
  readonly subject: string;
  readonly client: string;
  /**
   * The mark of the credentials that the session's server was started with: who brings others is somebody else to it. Absent
   * where it was started with none.
   */
  readonly credentials?: string;
}

/** Who everybody is where the gateway does no authentication. */
export const anonymous: Principal = { issuer: '', subject: '', client: '' };

/** True if both are the same in all their parts. */
export const isSame = (a: Principal, b: Principal): boolean => isSameUser(a, b) && a.credentials === b.credentials;

/** True if both are the same user, with whatever credentials for a server. */
export const isSameUser = (a: Principal, b: Principal): boolean =>
  a.issuer === b.issuer && a.subject === b.subject && a.client === b.client;
