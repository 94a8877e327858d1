/** What an instance looks at before it acts. */
import { frontLetters } from './mail.ts';
import { has, type Rules } from './rules.ts';
import type { Letter, Process, State } from './state.ts';

/** Letters from an owner; all others are for one. */
export const replies: readonly Letter['kind'][] = ['answer', 'event', 'none', 'broken'];

/** Does somebody wait here for the session: a client, or a letter? */
export const wants = (state: State, process: Process): boolean =>
  process.exchange.step === 'unsent' || frontLetters(state, process).some(([, { kind }]) => !replies.includes(kind));

/** May it say what is not in the log, and hand requests to the backend? Looked at in the same step as it is done. */
export const canSpeak = ({ isUp, session, holdsByClock }: Process, rules: Rules): boolean =>
  isUp && session?.isVerified === true && (holdsByClock || !has(rules, 'ownClock'));

/** Under which a session may be taken over, or said not to exist. */
export function mayTakeOver({ redis }: State, process: Process, rules: Rules): boolean {
  const isYoung = has(rules, 'freshAge') ? redis.isYoung : process.sawYoung;
  const isHealthy = process.isHealthy || !has(rules, 'healthy');
  return process.holdsByClock && isHealthy && (!isYoung || !has(rules, 'quarantine'));
}
