import type { PolicyPhase } from '../../core/ops/server-events.ts';
import type { ByteRange } from '../../core/protocol/json.ts';
import { findRange, readScalar, scanJson } from '../../core/protocol/json.ts';
import { maxServerDepth } from '../../core/protocol/message/message.ts';

/** What the policy has decided. */
export type Decision =
  | { readonly kind: 'allow' }
  /** `by`: the arguments or the result instead, as JSON text without line breaks. */
  | { readonly kind: 'change'; readonly by: string }
  | { readonly kind: 'deny'; readonly why: string | undefined }
  /** A person is to approve the request. */
  | { readonly kind: 'ask'; readonly question: string | undefined };

/** The words of a policy that clients see are cut after this many characters (P8). */
const maxWords = 500;

const allow: Decision = { kind: 'allow' };

/**
 * Reads the answer of a policy service: `{"result": true}`, or an object with `allow`, `reason`, `approval`, and
 * `arguments` or `result` (docs/policy.md). Returns a sentence for the operator if it is no decision: the policy may be
 * undefined, or say something that the gateway does not know.
 */
export function readDecision(answer: Buffer, phase: PolicyPhase): Decision | string {
  if (!scanJson(answer, maxServerDepth).ok) return 'The answer is no JSON.';
  const find = (...path: string[]): ByteRange | undefined | 'duplicate_key' => {
    const range = findRange(answer, path);
    return range === 'absent' ? undefined : range;
  };
  const [whole, allows, reason, approval] = [
    find('result'),
    find('result', 'allow'),
    find('result', 'reason'),
    find('result', 'approval'),
  ];
  const changed = find('result', phase === 'request' ? 'arguments' : 'result');
  const parts = [whole, allows, reason, approval, changed];
  if (parts.includes('duplicate_key')) return 'The answer has a key twice.';
  if (typeof whole !== 'object')
    return 'The answer has no result: no rule gives the decision. Check the path in url, and give the rule a default.';
  const scalarIn = (range: typeof whole | undefined | 'duplicate_key'): unknown =>
    typeof range === 'object' ? readScalar(answer, range) : undefined;
  const verdict = answer[whole.start] === openBrace ? scalarIn(allows) : scalarIn(whole);
  if (typeof approval === 'object' && ![false, null].includes(scalarIn(approval) as null)) {
    if (phase === 'result') return 'The answer asks for an approval of a result, which only a request can get.';
    const said =
      scalarIn(approval) === undefined ? scalarIn(find('result', 'approval', 'message')) : scalarIn(approval);
    return { kind: 'ask', question: wordsOf(said) };
  }
  if (verdict === false) return { kind: 'deny', why: wordsOf(scalarIn(reason)) };
  if (verdict !== true) return 'The answer has no "allow" that is true or false.';
  if (typeof changed !== 'object') return allow;
  if (answer[changed.start] !== openBrace) return 'The answer changes something into what is no object.';
  return { kind: 'change', by: answer.toString('utf8', changed.start, changed.end).replace(/[\r\n]/g, ' ') };
}

/** The words of a policy for a client, on one line. */
const wordsOf = (said: unknown): string | undefined =>
  typeof said === 'string' && said.trim() !== ''
    ? said
        .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
        .trim()
        .slice(0, maxWords)
    : undefined;

const openBrace = 0x7b;
