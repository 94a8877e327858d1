/** How the gateway gets the access tokens for a server; see docs/recipes/upstream-identity.md. */
export interface UpstreamIdentity {
  /**
   * `client_credentials`: one token for the gateway itself (RFC 6749, section 4.4). `token_exchange`: one for each user,
   * in exchange for the user's token (RFC 8693).
   */
  readonly grant: 'client_credentials' | 'token_exchange';
  /** The authorization server, whose metadata name the token endpoint. */
  readonly issuer?: string | undefined;
  /** The token endpoint, where the authorization server has no metadata. */
  readonly tokenUrl?: string | undefined;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  /** Where the secret is sent; in the header by default. */
  readonly secretIn?: 'header' | 'body' | undefined;
  /** PEM or JWK: the gateway proves its identity by signatures instead of a secret (RFC 7523). */
  readonly privateKey?: string | undefined;
  /** The name of the key at the authorization server. */
  readonly keyId?: string | undefined;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  /** RFC 8707. */
  readonly resource?: string | undefined;
}
