import type { UpstreamIdentityFeature } from '../../app/features/servers.ts';
import { NoUpstreamToken } from '../../core/backend/upstream-tokens.ts';
import { HeldTokens, type RequestToken } from './held-tokens.ts';

export const upstreamIdentity: UpstreamIdentityFeature = {
  tokensOf(server, identity, emit) {
    let requesting: Promise<RequestToken> | undefined;
    // The OAuth library is loaded with the first token (docs/decisions/0085).
    const load = async (): Promise<RequestToken> => {
      const { createTokenRequests } = await import('./token-client.ts');
      return createTokenRequests(identity);
    };
    return new HeldTokens(async (subject) => {
      requesting ??= load();
      try {
        const issued = await (await requesting)(subject);
        emit({ type: 'upstream-token', server, outcome: 'issued' });
        return issued;
      } catch (cause) {
        if (cause instanceof NoUpstreamToken)
          emit({ type: 'upstream-token', server, outcome: cause.reason, detail: cause.message });
        throw cause;
      }
    });
  },
};
