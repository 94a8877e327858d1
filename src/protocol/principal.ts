/**
 * The owner of a session; to anyone else the session does not exist (P11). All fields are empty while the gateway does
 * no authentication.
 */
export interface Principal {
  readonly issuer: string;
  readonly subject: string;
  readonly client: string;
  /**
   * The mark of the credentials that the session's server was started with. The same user with other credentials is a
   * different principal. Absent where the server was started without a client's credentials.
   */
  readonly credentials?: string;
}

/** The principal of every request where the gateway does no authentication. */
export const anonymous: Principal = { issuer: '', subject: '', client: '' };

/** True if all parts of both are the same. */
export const isSame = (a: Principal, b: Principal): boolean => isSameUser(a, b) && a.credentials === b.credentials;

/** True if both are the same user, whatever their credentials for a server are. */
export const isSameUser = (a: Principal, b: Principal): boolean =>
  a.issuer === b.issuer && a.subject === b.subject && a.client === b.client;
