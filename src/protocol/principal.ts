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
