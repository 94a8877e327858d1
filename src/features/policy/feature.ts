import type { PolicyFeature } from '../../app/features/calls.ts';
import { readDecision } from './decision.ts';
import { createPolicyClient } from './policy-client.ts';
import { PolicyGuard } from './policy-guard.ts';
import { contentOf, questionText } from './question.ts';

export const policy: PolicyFeature = {
  guard(options) {
    const client = createPolicyClient(options.settings);
    return (opening) => new PolicyGuard(options, client, opening);
  },
  async test(server, settings) {
    const asked = { server, method: 'tools/call', name: 'mcp-gangway-check', uri: undefined, sender: undefined };
    const question = questionText('request', asked, contentOf(Buffer.from('{}')));
    const answer = await createPolicyClient(settings).ask(question);
    if (!Buffer.isBuffer(answer)) return answer.detail;
    const decision = readDecision(answer, 'request');
    return typeof decision === 'string' ? decision : undefined;
  },
};
