/** Types for the parts that the tests use. The package has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  interface Interaction {
    readonly prompt: { readonly name: string };
    readonly params: { readonly client_id: string; readonly scope?: string; readonly resource?: string };
    readonly session?: { readonly accountId: string };
  }

  interface Grant {
    addOIDCScope(scopes: string): void;
    addResourceScope(resource: string, scopes: string): void;
    save(): Promise<string>;
  }

  interface TokenModel {
    find(token: string): Promise<StoredToken | undefined>;
    revokeByGrantId(grantId: string): Promise<void>;
  }

  interface StoredToken {
    readonly clientId: string;
    readonly accountId: string;
    readonly scope: string;
    readonly exp: number;
  }

  // biome-ignore lint/style/noDefaultExport: so it is exported
  export default class Provider {
    constructor(issuer: string, configuration: object);
    readonly Grant: (new (of: {
      readonly accountId: string;
      readonly clientId: string;
    }) => Grant) & { readonly adapter: { destroy(id: string): Promise<void> } };
    readonly AccessToken: TokenModel;
    readonly RefreshToken: TokenModel;
    callback(): (incoming: IncomingMessage, outgoing: ServerResponse) => void;
    interactionDetails(incoming: IncomingMessage, outgoing: ServerResponse): Promise<Interaction>;
    interactionFinished(incoming: IncomingMessage, outgoing: ServerResponse, result: object): Promise<void>;
  }
}
